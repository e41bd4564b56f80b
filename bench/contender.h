// What takes part in the rounds of a measurement: the operator, its peer, a loop that shows a limit of the machine.
#ifndef MLAP_BENCH_CONTENDER_H_
#define MLAP_BENCH_CONTENDER_H_

#include <string>

namespace mlap::bench {

class Contender {
 public:
  explicit Contender(std::string name) : name_(std::move(name)) {}
  virtual ~Contender() = default;
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  const std::string& name() const { return name_; }

  // Does its work once, on memory that no cache holds, and returns the seconds it took. Throws on failure.
  virtual double RunOnce() = 0;

  // So many runs touch all of its memory once.
  virtual int RunsPerPass() const { return 1; }

  // Ends its turn: leaves no thread spinning that would disturb the next contender.
  virtual void EndTurn() = 0;

 private:
  std::string name_;
};

}  // namespace mlap::bench

#endif  // MLAP_BENCH_CONTENDER_H_

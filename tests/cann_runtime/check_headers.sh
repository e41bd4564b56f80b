#!/bin/sh
# Compiles the CANN-compatible headers as programs would: each alone, and all in several orders, in every language
# version they promise, with warnings as errors.
# Usage: check_headers.sh <include directory> <C compiler> <C++ compiler>
set -u
include=$1
cc=$2
cxx=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

compile() {
  name=$1
  for language in c99 c11 c++11 c++14 c++17 c++20; do
    case $language in
      c++*) compiler="$cxx -x c++" ;;
      *) compiler="$cc -x c -Wstrict-prototypes" ;;
    esac
    if ! $compiler -std=$language -Wall -Wextra -Werror -pedantic -I"$include" -fsyntax-only "$work/program" \
        2>"$work/messages"; then
      echo "$name does not compile as $language:" >&2
      cat "$work/messages" >&2
      status=1
    fi
  done
}

include_all() {
  for header; do echo "#include \"$header\""; done
}

headers=$(cd "$include" && find acl aclnn aclnnop -name '*.h' | sort)
for header in $headers; do
  { include_all "$header" "$header"; echo "int main(void) { return 0; }"; } >"$work/program"
  compile "$header"
done

# A program that uses what the headers promise it.
program='
int main(void) {
  aclrtStream stream = 0;
  void **alias = &stream;
  aclDataType type = ACL_BF16;
  aclFormat format = ACL_FORMAT_FRACTAL_NZ;
  aclnnStatus status = ACLNN_SUCCESS;
  (void)sizeof(char[sizeof(aclrtPtrAttributes) == 28 ? 1 : -1]);
  (void)sizeof(char[sizeof(aclrtMemLocation) == 8 ? 1 : -1]);
  (void)sizeof(char[sizeof(aclDataType) == 4 && sizeof(aclFormat) == 4 && sizeof(aclrtMemcpyKind) == 4 ? 1 : -1]);
#ifdef __cplusplus
  type = aclDataType::ACL_BF16;
  format = aclFormat::ACL_FORMAT_ND;
  status = OK;
#endif
  (void)alias;
  (void)status;
#if ACL_ERROR_RT_STREAM_SYNC_TIMEOUT != 507046
#error
#endif
  return type == ACL_BF16 && format == ACL_FORMAT_ND ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
}'
for order in cat tac 'sort -k 1.6' 'sort -r -k 1.8'; do
  # shellcheck disable=SC2046,SC2086
  { include_all $(echo "$headers" | $order); echo "$program"; } >"$work/program"
  compile "all headers in the order of '$order'"
done
exit $status

# Runs ${DIGEST} with several numbers of threads and fails unless all print the same.
foreach(num_threads IN ITEMS 1 2 3 7)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env MLAP_NUM_THREADS=${num_threads} ${DIGEST}
    OUTPUT_VARIABLE digest
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${DIGEST} fails with ${num_threads} threads: ${status}\n${digest}")
  endif()
  if(NOT DEFINED expected)
    set(expected "${digest}")
  elseif(NOT digest STREQUAL expected)
    message(FATAL_ERROR "1 thread:\n${expected}\n${num_threads} threads:\n${digest}")
  endif()
endforeach()

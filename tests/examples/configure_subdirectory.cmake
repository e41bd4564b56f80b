# Configures the project SOURCE, which takes the sources in MLAPROLOG in, in the new directory BINARY, and checks that it
# would install nothing.
file(REMOVE_RECURSE ${BINARY})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BINARY} -G ${GENERATOR} -DMLAPROLOG=${MLAPROLOG}
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_COMPILER=${C}
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "it cannot be configured:\n${output}")
endif()
file(GLOB_RECURSE scripts ${BINARY}/cmake_install.cmake ${BINARY}/*/cmake_install.cmake)
foreach(script IN LISTS scripts)
  file(STRINGS ${script} rules REGEX "^ *file\\(INSTALL")
  if(rules)
    message(FATAL_ERROR "${script} installs:\n${rules}")
  endif()
endforeach()

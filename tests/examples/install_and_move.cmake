# Installs BUILD under PREFIX and moves the tree to MOVED.
file(REMOVE_RECURSE ${PREFIX} ${MOVED})
set(config_option)
if(CONFIG)
  set(config_option --config ${CONFIG})
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} ${config_option} --prefix ${PREFIX}
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "cmake --install failed:\n${output}")
endif()
file(RENAME ${PREFIX} ${MOVED})

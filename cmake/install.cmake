# The install tree: the native library under the prefix, the CANN-compatible one (src/cann) under <prefix>/cann, so that
# ASCEND_HOME_PATH=<prefix>/cann is all a CANN program needs.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/mlaprolog DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS mlaprolog EXPORT mlaprologTargets LIBRARY DESTINATION lib)
install(EXPORT mlaprologTargets NAMESPACE mlaprolog:: DESTINATION lib/cmake/mlaprolog FILE mlaprologTargets.cmake)
configure_package_config_file(cmake/mlaprologConfig.cmake.in ${PROJECT_BINARY_DIR}/mlaprologConfig.cmake
  INSTALL_DESTINATION lib/cmake/mlaprolog)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mlaprologConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mlaprologConfig.cmake ${PROJECT_BINARY_DIR}/mlaprologConfigVersion.cmake
  DESTINATION lib/cmake/mlaprolog)

# The prefix is where the file lies, so that the tree may be moved.
configure_file(cmake/mlaprolog.pc.in ${CMAKE_CURRENT_BINARY_DIR}/mlaprolog.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mlaprolog.pc DESTINATION lib/pkgconfig)

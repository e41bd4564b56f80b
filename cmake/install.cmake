# The install tree: the native library under the prefix, the CANN-compatible one (src/cann) under <prefix>/cann, so that
# ASCEND_HOME_PATH=<prefix>/cann is all a CANN program needs.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/mlaprolog DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS mlaprolog EXPORT mlaprologTargets LIBRARY DESTINATION lib)
install(EXPORT mlaprologTargets NAMESPACE mlaprolog:: DESTINATION lib/cmake/mlaprolog FILE mlaprologTargets.cmake)
configure_package_config_file(cmake/mlaprologConfig.cmake.in ${CMAKE_BINARY_DIR}/mlaprologConfig.cmake
  INSTALL_DESTINATION lib/cmake/mlaprolog)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/mlaprologConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/mlaprologConfig.cmake ${CMAKE_BINARY_DIR}/mlaprologConfigVersion.cmake
  DESTINATION lib/cmake/mlaprolog)

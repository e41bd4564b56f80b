# Flags every target of the project is compiled with. ISA flags are not here: only cmake/kernels.cmake sets them.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

find_package(Threads REQUIRED)

add_library(mlap_flags INTERFACE)
target_compile_options(mlap_flags INTERFACE
  -Wall -Wextra -Wshadow -Wpointer-arith
  # The rounding points are part of the contract: no multiply and add is ever fused behind our back.
  -ffp-contract=off
  # gcc 12 sees overlapping copies in the addition of a literal and a string (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(MLAP_WERROR)
  target_compile_options(mlap_flags INTERFACE -Werror)
endif()
if(MLAP_SANITIZE STREQUAL "address")
  set(sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
elseif(MLAP_SANITIZE STREQUAL "thread")
  set(sanitizer_flags -fsanitize=thread -fno-omit-frame-pointer -g1)
elseif(MLAP_SANITIZE)
  message(FATAL_ERROR "MLAP_SANITIZE is '${MLAP_SANITIZE}'; use address or thread, or leave it empty")
endif()
if(MLAP_SANITIZE)
  target_compile_options(mlap_flags INTERFACE ${sanitizer_flags})
  # A target of large template libraries leaves out the checks of every pointer, a record of 64 bytes each, that the
  # address sanitizer makes when the pointer is used.
  set(pointer_checks null,alignment,vptr,object-size,nonnull-attribute,returns-nonnull-attribute,pointer-overflow)
  target_compile_options(mlap_flags INTERFACE
    $<$<BOOL:$<TARGET_PROPERTY:MLAP_LEAVES_OUT_POINTER_CHECKS>>:-fno-sanitize=${pointer_checks}>)
  target_link_options(mlap_flags INTERFACE ${sanitizer_flags})
  # The sanitizers' records hold a million addresses. In a program that may lie anywhere each is patched at every start,
  # which takes longer than most tests.
  string(APPEND CMAKE_EXE_LINKER_FLAGS " -no-pie")
endif()
target_include_directories(mlap_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)

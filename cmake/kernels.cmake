# The one table of ISA names and their compiler flags; nothing else in the build mentions an ISA flag.
include(CheckCXXCompilerFlag)

set(MLAP_ISA_FLAGS_scalar "")
set(MLAP_ISA_FLAGS_avx2 -mavx2 -mfma)
set(MLAP_ISA_FLAGS_avxvnni ${MLAP_ISA_FLAGS_avx2} -mavxvnni)
set(MLAP_ISA_FLAGS_avx512 ${MLAP_ISA_FLAGS_avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq)
set(MLAP_ISA_FLAGS_avx512vnni ${MLAP_ISA_FLAGS_avx512} -mavx512vnni)
set(MLAP_ISA_FLAGS_avx512bf16 ${MLAP_ISA_FLAGS_avx512vnni} -mavx512vbmi -mavx512bf16)

set(MLAP_ISA_FLAGS_amx ${MLAP_ISA_FLAGS_avx512bf16} -mamx-tile -mamx-bf16 -mamx-int8)

# Adds the kernel objects of one ISA as target mlap_kernels_<isa>, if the compiler and the target architecture know it.
# Sets MLAP_BUILT_ISAS and MLAP_HAVE_<isa> in the caller's scope.
function(mlap_add_kernels isa)
  cmake_parse_arguments(arg "" "" "SOURCES;ARCHITECTURES" ${ARGN})
  if(arg_ARCHITECTURES AND NOT CMAKE_SYSTEM_PROCESSOR IN_LIST arg_ARCHITECTURES)
    message(STATUS "ISA ${isa} is not built: the target is ${CMAKE_SYSTEM_PROCESSOR}")
    return()
  endif()
  foreach(flag IN LISTS MLAP_ISA_FLAGS_${isa})
    string(MAKE_C_IDENTIFIER "MLAP_COMPILER_HAS${flag}" variable)
    check_cxx_compiler_flag(${flag} ${variable})
    if(NOT ${variable})
      message(STATUS "ISA ${isa} is not built: the compiler lacks ${flag}")
      return()
    endif()
  endforeach()
  add_library(mlap_kernels_${isa} OBJECT ${arg_SOURCES})
  target_link_libraries(mlap_kernels_${isa} PRIVATE mlap_flags)
  # With sanitizers the optimiser takes minutes over the unrolled loops of vector instructions.
  set(optimisation -O3)
  if(MLAP_SANITIZE AND NOT isa STREQUAL scalar)
    set(optimisation -O1)
  endif()
  target_compile_options(mlap_kernels_${isa} PRIVATE
    ${MLAP_ISA_FLAGS_${isa}} ${optimisation} -fno-exceptions -fno-rtti -fno-lto -fno-math-errno
    # gcc 12 reports uninitialised variables inside its own AVX-512 header (GCC bug 105593).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized -Wno-maybe-uninitialized>)
  set(MLAP_BUILT_ISAS ${MLAP_BUILT_ISAS} ${isa} PARENT_SCOPE)
  set(MLAP_HAVE_${isa} 1 PARENT_SCOPE)
endfunction()

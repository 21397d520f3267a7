/* The language of bit field groups: what a driver says about its peripherals, without saying where anything lies.
 *
 *     bfGroup Uart {
 *         uint8 fifo data;
 *         bit ro ready;
 *         uint16 reset_value(26) divider;
 *     };
 *     make_device(Uart, uart, 0x10000000);
 *
 * For a compiler a group is a struct and every attribute vanishes, so that editors, gcc and clang take the source as it
 * is. edgewright defines EDGEWRIGHT_HAL_ANALYSIS to see the attributes. Every name exists with the prefix hal_; define
 * EDGEWRIGHT_HAL_PREFIXED before including this file to have no others. */
#ifndef EDGEWRIGHT_HAL_H
#define EDGEWRIGHT_HAL_H

#include <stdint.h>

#if defined(__GNUC__)
#define EDGEWRIGHT_UNUSED __attribute__((unused))
#else
#define EDGEWRIGHT_UNUSED
#endif

/* What hardware promises: bits without a field read as 0. */
#if defined(__clang__)
#define EDGEWRIGHT_ASSUME(condition) __builtin_assume(condition)
#elif defined(__GNUC__)
#define EDGEWRIGHT_ASSUME(condition) ((condition) ? (void)0 : __builtin_unreachable())
#else
#define EDGEWRIGHT_ASSUME(condition) ((void)0)
#endif

/* A function of a driver whose code is smaller where it is called, with the values that it is called with. */
#ifndef EDGEWRIGHT_INLINE
#if defined(__GNUC__)
#define EDGEWRIGHT_INLINE inline __attribute__((always_inline))
#else
#define EDGEWRIGHT_INLINE inline
#endif
#endif

#ifdef EDGEWRIGHT_HAL_ANALYSIS
#define EDGEWRIGHT_NOTE(...) __attribute__((annotate(__VA_ARGS__)))
#else
#define EDGEWRIGHT_NOTE(...)
#endif

/* Groups and devices. */
#define hal_bfGroup struct EDGEWRIGHT_NOTE("edgewright:group")
#define hal_make_device(type, name, address) \
    static hal_bfGroup type *const name EDGEWRIGHT_NOTE("edgewright:device") EDGEWRIGHT_UNUSED = \
        (struct type *)(uintptr_t)(address)
#define hal_bus(name, width, narrowest) \
    enum { edgewright_bus_width_of_##name = (width), edgewright_bus_narrowest_of_##name = (narrowest) }

/* A device whose accesses need not keep their order to those of other devices. */
#define hal_unordered(name) enum { edgewright_unordered_##name = 1 }

/* A device that is memory, as descriptors are that a controller finds there: it has no logic of its own. */
#define hal_in_memory(name) enum { edgewright_in_memory_##name = 1 }

/* A device whose address is known at run time only: name_at(address) is the pointer to it. */
#if defined(EDGEWRIGHT_HAL_ANALYSIS) || defined(EDGEWRIGHT_HAL_PROTOTYPE)
#define EDGEWRIGHT_MAPPED(type, name) struct type *name##_at(const volatile void *address);
#else
#define EDGEWRIGHT_MAPPED(type, name) \
    static inline struct type *name##_at(const volatile void *address) { return (struct type *)(uintptr_t)address; }
#endif
#define hal_mapped_device(type, name) EDGEWRIGHT_MAPPED(type, name) enum { edgewright_mapped_##name = 1 }

/* Before a statement: one read of a register may serve all of it; of a loop, each turn. */
#define hal_snapshot

/* Several fields at once: hal_assign(uart, parity = 1, stops = 2) is an assignment of each, one after the other. */
#define EDGEWRIGHT_1(p, a) ((p)->a)
#define EDGEWRIGHT_2(p, a, ...) ((p)->a), EDGEWRIGHT_1(p, __VA_ARGS__)
#define EDGEWRIGHT_3(p, a, ...) ((p)->a), EDGEWRIGHT_2(p, __VA_ARGS__)
#define EDGEWRIGHT_4(p, a, ...) ((p)->a), EDGEWRIGHT_3(p, __VA_ARGS__)
#define EDGEWRIGHT_5(p, a, ...) ((p)->a), EDGEWRIGHT_4(p, __VA_ARGS__)
#define EDGEWRIGHT_6(p, a, ...) ((p)->a), EDGEWRIGHT_5(p, __VA_ARGS__)
#define EDGEWRIGHT_7(p, a, ...) ((p)->a), EDGEWRIGHT_6(p, __VA_ARGS__)
#define EDGEWRIGHT_8(p, a, ...) ((p)->a), EDGEWRIGHT_7(p, __VA_ARGS__)
#define EDGEWRIGHT_9(p, a, ...) ((p)->a), EDGEWRIGHT_8(p, __VA_ARGS__)
#define EDGEWRIGHT_10(p, a, ...) ((p)->a), EDGEWRIGHT_9(p, __VA_ARGS__)
#define EDGEWRIGHT_11(p, a, ...) ((p)->a), EDGEWRIGHT_10(p, __VA_ARGS__)
#define EDGEWRIGHT_12(p, a, ...) ((p)->a), EDGEWRIGHT_11(p, __VA_ARGS__)
#define EDGEWRIGHT_13(p, a, ...) ((p)->a), EDGEWRIGHT_12(p, __VA_ARGS__)
#define EDGEWRIGHT_14(p, a, ...) ((p)->a), EDGEWRIGHT_13(p, __VA_ARGS__)
#define EDGEWRIGHT_15(p, a, ...) ((p)->a), EDGEWRIGHT_14(p, __VA_ARGS__)
#define EDGEWRIGHT_16(p, a, ...) ((p)->a), EDGEWRIGHT_15(p, __VA_ARGS__)
#define EDGEWRIGHT_17(p, a, ...) ((p)->a), EDGEWRIGHT_16(p, __VA_ARGS__)
#define EDGEWRIGHT_18(p, a, ...) ((p)->a), EDGEWRIGHT_17(p, __VA_ARGS__)
#define EDGEWRIGHT_19(p, a, ...) ((p)->a), EDGEWRIGHT_18(p, __VA_ARGS__)
#define EDGEWRIGHT_20(p, a, ...) ((p)->a), EDGEWRIGHT_19(p, __VA_ARGS__)
#define EDGEWRIGHT_21(p, a, ...) ((p)->a), EDGEWRIGHT_20(p, __VA_ARGS__)
#define EDGEWRIGHT_22(p, a, ...) ((p)->a), EDGEWRIGHT_21(p, __VA_ARGS__)
#define EDGEWRIGHT_23(p, a, ...) ((p)->a), EDGEWRIGHT_22(p, __VA_ARGS__)
#define EDGEWRIGHT_24(p, a, ...) ((p)->a), EDGEWRIGHT_23(p, __VA_ARGS__)
#define EDGEWRIGHT_25(p, a, ...) ((p)->a), EDGEWRIGHT_24(p, __VA_ARGS__)
#define EDGEWRIGHT_26(p, a, ...) ((p)->a), EDGEWRIGHT_25(p, __VA_ARGS__)
#define EDGEWRIGHT_27(p, a, ...) ((p)->a), EDGEWRIGHT_26(p, __VA_ARGS__)
#define EDGEWRIGHT_28(p, a, ...) ((p)->a), EDGEWRIGHT_27(p, __VA_ARGS__)
#define EDGEWRIGHT_29(p, a, ...) ((p)->a), EDGEWRIGHT_28(p, __VA_ARGS__)
#define EDGEWRIGHT_30(p, a, ...) ((p)->a), EDGEWRIGHT_29(p, __VA_ARGS__)
#define EDGEWRIGHT_31(p, a, ...) ((p)->a), EDGEWRIGHT_30(p, __VA_ARGS__)
#define EDGEWRIGHT_32(p, a, ...) ((p)->a), EDGEWRIGHT_31(p, __VA_ARGS__)
#define EDGEWRIGHT_PICK(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, \
    a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, name, ...) name
#define hal_assign(pointer, ...) (EDGEWRIGHT_PICK(__VA_ARGS__, EDGEWRIGHT_32, EDGEWRIGHT_31, \
    EDGEWRIGHT_30, EDGEWRIGHT_29, EDGEWRIGHT_28, EDGEWRIGHT_27, EDGEWRIGHT_26, EDGEWRIGHT_25, \
    EDGEWRIGHT_24, EDGEWRIGHT_23, EDGEWRIGHT_22, EDGEWRIGHT_21, EDGEWRIGHT_20, EDGEWRIGHT_19, \
    EDGEWRIGHT_18, EDGEWRIGHT_17, EDGEWRIGHT_16, EDGEWRIGHT_15, EDGEWRIGHT_14, EDGEWRIGHT_13, \
    EDGEWRIGHT_12, EDGEWRIGHT_11, EDGEWRIGHT_10, EDGEWRIGHT_9, EDGEWRIGHT_8, EDGEWRIGHT_7, EDGEWRIGHT_6, \
    EDGEWRIGHT_5, EDGEWRIGHT_4, EDGEWRIGHT_3, EDGEWRIGHT_2, EDGEWRIGHT_1, 0)(pointer, __VA_ARGS__))

/* The flags that a field holds (w1c), which are cleared: hal_read_and_clear(uart->errors). */
#define hal_read_and_clear(field) ((field) = (field))

/* What fields are and do. */
#define hal_ro EDGEWRIGHT_NOTE("edgewright:ro")
#define hal_wo EDGEWRIGHT_NOTE("edgewright:wo")
#define hal_w1c EDGEWRIGHT_NOTE("edgewright:w1c")
#define hal_w1s EDGEWRIGHT_NOTE("edgewright:w1s")
#define hal_clear_on_read EDGEWRIGHT_NOTE("edgewright:clear_on_read")
#define hal_fifo EDGEWRIGHT_NOTE("edgewright:fifo")
#define hal_hw EDGEWRIGHT_NOTE("edgewright:hw")
#define hal_shared_with_isr EDGEWRIGHT_NOTE("edgewright:shared_with_isr")
#define hal_split EDGEWRIGHT_NOTE("edgewright:split")
#define hal_rse(...) EDGEWRIGHT_NOTE("edgewright:rse:" #__VA_ARGS__)
#define hal_wse(...) EDGEWRIGHT_NOTE("edgewright:wse:" #__VA_ARGS__)
#define hal_while_zero(...) EDGEWRIGHT_NOTE("edgewright:while_zero:" #__VA_ARGS__)
#define hal_together(...) EDGEWRIGHT_NOTE("edgewright:together:" #__VA_ARGS__)
#define hal_gathers(...) EDGEWRIGHT_NOTE("edgewright:gathers:" #__VA_ARGS__)
#define hal_protection(kind) EDGEWRIGHT_NOTE("edgewright:protection:" #kind)
#define hal_reset_value(value) EDGEWRIGHT_NOTE("edgewright:reset_value", value)
#define hal_pin(byte, bit) EDGEWRIGHT_NOTE("edgewright:pin", byte, bit)

/* How many bytes lie between the elements of an array of groups: bfGroup Descriptor stride(12) entries[8]; */
#define hal_stride(bytes) EDGEWRIGHT_NOTE("edgewright:stride", bytes)

/* Fields of 1 to 64 bits. */
typedef uint8_t hal_bit;
typedef uint8_t hal_uint1;
typedef uint8_t hal_uint2;
typedef uint8_t hal_uint3;
typedef uint8_t hal_uint4;
typedef uint8_t hal_uint5;
typedef uint8_t hal_uint6;
typedef uint8_t hal_uint7;
typedef uint8_t hal_uint8;
typedef uint16_t hal_uint9;
typedef uint16_t hal_uint10;
typedef uint16_t hal_uint11;
typedef uint16_t hal_uint12;
typedef uint16_t hal_uint13;
typedef uint16_t hal_uint14;
typedef uint16_t hal_uint15;
typedef uint16_t hal_uint16;
typedef uint32_t hal_uint17;
typedef uint32_t hal_uint18;
typedef uint32_t hal_uint19;
typedef uint32_t hal_uint20;
typedef uint32_t hal_uint21;
typedef uint32_t hal_uint22;
typedef uint32_t hal_uint23;
typedef uint32_t hal_uint24;
typedef uint32_t hal_uint25;
typedef uint32_t hal_uint26;
typedef uint32_t hal_uint27;
typedef uint32_t hal_uint28;
typedef uint32_t hal_uint29;
typedef uint32_t hal_uint30;
typedef uint32_t hal_uint31;
typedef uint32_t hal_uint32;
typedef uint64_t hal_uint33;
typedef uint64_t hal_uint34;
typedef uint64_t hal_uint35;
typedef uint64_t hal_uint36;
typedef uint64_t hal_uint37;
typedef uint64_t hal_uint38;
typedef uint64_t hal_uint39;
typedef uint64_t hal_uint40;
typedef uint64_t hal_uint41;
typedef uint64_t hal_uint42;
typedef uint64_t hal_uint43;
typedef uint64_t hal_uint44;
typedef uint64_t hal_uint45;
typedef uint64_t hal_uint46;
typedef uint64_t hal_uint47;
typedef uint64_t hal_uint48;
typedef uint64_t hal_uint49;
typedef uint64_t hal_uint50;
typedef uint64_t hal_uint51;
typedef uint64_t hal_uint52;
typedef uint64_t hal_uint53;
typedef uint64_t hal_uint54;
typedef uint64_t hal_uint55;
typedef uint64_t hal_uint56;
typedef uint64_t hal_uint57;
typedef uint64_t hal_uint58;
typedef uint64_t hal_uint59;
typedef uint64_t hal_uint60;
typedef uint64_t hal_uint61;
typedef uint64_t hal_uint62;
typedef uint64_t hal_uint63;
typedef uint64_t hal_uint64;

#ifndef EDGEWRIGHT_HAL_PREFIXED
#define bfGroup hal_bfGroup
#define make_device(type, name, address) hal_make_device(type, name, address)
#define mapped_device(type, name) hal_mapped_device(type, name)
#define bus(name, width, narrowest) hal_bus(name, width, narrowest)
#define unordered(name) hal_unordered(name)
#define in_memory(name) hal_in_memory(name)
#define snapshot hal_snapshot
#define assign(...) hal_assign(__VA_ARGS__)
#define read_and_clear(field) hal_read_and_clear(field)
#define ro hal_ro
#define wo hal_wo
#define w1c hal_w1c
#define w1s hal_w1s
#define clear_on_read hal_clear_on_read
#define fifo hal_fifo
#define hw hal_hw
#define shared_with_isr hal_shared_with_isr
#define split hal_split
/* Not by way of the others: a name that is an attribute too must not be expanded on the way. */
#define rse(...) EDGEWRIGHT_NOTE("edgewright:rse:" #__VA_ARGS__)
#define wse(...) EDGEWRIGHT_NOTE("edgewright:wse:" #__VA_ARGS__)
#define while_zero(...) EDGEWRIGHT_NOTE("edgewright:while_zero:" #__VA_ARGS__)
#define together(...) EDGEWRIGHT_NOTE("edgewright:together:" #__VA_ARGS__)
#define gathers(...) EDGEWRIGHT_NOTE("edgewright:gathers:" #__VA_ARGS__)
#define protection(kind) EDGEWRIGHT_NOTE("edgewright:protection:" #kind)
#define reset_value(value) hal_reset_value(value)
#define pin(byte, bit) hal_pin(byte, bit)
#define stride(bytes) hal_stride(bytes)
typedef hal_bit bit;
typedef hal_uint1 uint1;
typedef hal_uint2 uint2;
typedef hal_uint3 uint3;
typedef hal_uint4 uint4;
typedef hal_uint5 uint5;
typedef hal_uint6 uint6;
typedef hal_uint7 uint7;
typedef hal_uint8 uint8;
typedef hal_uint9 uint9;
typedef hal_uint10 uint10;
typedef hal_uint11 uint11;
typedef hal_uint12 uint12;
typedef hal_uint13 uint13;
typedef hal_uint14 uint14;
typedef hal_uint15 uint15;
typedef hal_uint16 uint16;
typedef hal_uint17 uint17;
typedef hal_uint18 uint18;
typedef hal_uint19 uint19;
typedef hal_uint20 uint20;
typedef hal_uint21 uint21;
typedef hal_uint22 uint22;
typedef hal_uint23 uint23;
typedef hal_uint24 uint24;
typedef hal_uint25 uint25;
typedef hal_uint26 uint26;
typedef hal_uint27 uint27;
typedef hal_uint28 uint28;
typedef hal_uint29 uint29;
typedef hal_uint30 uint30;
typedef hal_uint31 uint31;
typedef hal_uint32 uint32;
typedef hal_uint33 uint33;
typedef hal_uint34 uint34;
typedef hal_uint35 uint35;
typedef hal_uint36 uint36;
typedef hal_uint37 uint37;
typedef hal_uint38 uint38;
typedef hal_uint39 uint39;
typedef hal_uint40 uint40;
typedef hal_uint41 uint41;
typedef hal_uint42 uint42;
typedef hal_uint43 uint43;
typedef hal_uint44 uint44;
typedef hal_uint45 uint45;
typedef hal_uint46 uint46;
typedef hal_uint47 uint47;
typedef hal_uint48 uint48;
typedef hal_uint49 uint49;
typedef hal_uint50 uint50;
typedef hal_uint51 uint51;
typedef hal_uint52 uint52;
typedef hal_uint53 uint53;
typedef hal_uint54 uint54;
typedef hal_uint55 uint55;
typedef hal_uint56 uint56;
typedef hal_uint57 uint57;
typedef hal_uint58 uint58;
typedef hal_uint59 uint59;
typedef hal_uint60 uint60;
typedef hal_uint61 uint61;
typedef hal_uint62 uint62;
typedef hal_uint63 uint63;
typedef hal_uint64 uint64;
#endif

#endif

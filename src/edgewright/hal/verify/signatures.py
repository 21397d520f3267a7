"""How a driver's functions, and those it calls, are called: their parameters as libclang knows them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from clang import cindex

from ..language.contexts import contexts_of
from ..language.cursors import (
    KINDS,
    Cursor,
    attributes,
    constant,
    is_device,
    is_function,
    is_volatile,
    top_level,
    walk,
)
from ..language.description import Description
from ..language.nodes import operand
from ..language.source import Source
from .abi import Signature, Type

_KIND = cindex.TypeKind
_INTEGERS = {
    _KIND.BOOL: (1, False),  # no other value may be passed
    _KIND.CHAR_U: (8, False),
    _KIND.UCHAR: (8, False),
    _KIND.CHAR_S: (8, True),
    _KIND.SCHAR: (8, True),
    _KIND.USHORT: (16, False),
    _KIND.SHORT: (16, True),
    _KIND.UINT: (32, False),
    _KIND.INT: (32, True),
    _KIND.ULONG: (32, False),  # on the targets, whatever the host has
    _KIND.LONG: (32, True),
    _KIND.ULONGLONG: (64, False),
    _KIND.LONGLONG: (64, True),
    _KIND.ENUM: (32, True),
}
_ALIAS = re.compile(r'\balias(?:__)?\s*\(\s*"(?P<target>\w+)"')
_ALIAS_OF_FUNCTION = re.compile(r"(?P<name>\w+)\s*\([^(){};]*\)\s*__attribute__\s*\(\([^;{}]*?" + _ALIAS.pattern)


class _NoScalar(Exception):
    """A type that is passed in ways this room does not follow."""


def signatures_of(source: Source, description: Description) -> dict[str, Signature]:
    """All functions that the driver's files declare, by name."""
    found: dict[str, Signature] = {}
    objects = _objects(source)
    for unit in source.units:
        for cursor in top_level(unit):
            if cursor.kind is KINDS.FUNCTION_DECL:
                name = str(cursor.spelling)
                known = _signature(cursor, description, objects)
                contexts = contexts_of(cursor, description) if cursor.is_definition() else {}
                if contexts or name not in found or not any(type_.group for _, type_ in found[name].parameters):
                    found[name] = _with_contexts(known, contexts)
    return found


def _with_contexts(known: Signature, contexts: Mapping[str, str]) -> Signature:
    """The signature with groups for parameters `void *` that are pointers to them."""
    parameters = tuple(
        (name, replace(type_, group=contexts[name]) if name in contexts else type_) for name, type_ in known.parameters
    )
    return replace(known, parameters=parameters)


def exported(source: Source) -> frozenset[str]:
    """Functions that other files can call: defined, and not static."""
    return frozenset(
        str(cursor.spelling)
        for unit in source.units
        for cursor in top_level(unit)
        if is_function(cursor) and cursor.storage_class is not cindex.StorageClass.STATIC
    )


def aliases(source: Source) -> dict[str, str]:
    """The alias of each function that an `alias` attribute names; "" if the form of the declaration is unknown."""
    text = b"\n".join(source.files.values()).decode(errors="replace")
    known = {match["target"]: "" for match in _ALIAS.finditer(text)}
    return known | {match["target"]: match["name"] for match in _ALIAS_OF_FUNCTION.finditer(text)}


def foreign_pages(source: Source) -> frozenset[int]:
    """Pages of 4 KiB that the driver reaches by addresses written in it: registers of other peripherals."""
    found = set()
    for top in source.cursors:
        if is_device(top):
            continue
        for cursor in walk(top):
            if cursor.kind is KINDS.CSTYLE_CAST_EXPR and cursor.type.get_canonical().kind is _KIND.POINTER:
                address = constant(operand(cursor))
                if address is not None and 0 < address < 1 << 32:
                    found.add(address & ~0xFFF)
    return frozenset(found)


def weak_functions(source: Source) -> frozenset[str]:
    """Functions of the driver that another file may replace: what stands here says nothing about them."""
    pragmas = (re.findall(rb"\bpragma\s+weak\s+(\w+)", content) for content in source.files.values())
    found = {name.decode() for names in pragmas for name in names}
    for cursor in source.cursors:
        if cursor.kind is KINDS.FUNCTION_DECL:
            texts = attributes(cursor, source.files[str(cursor.extent.start.file)])
            if any(source.macros.mentions(text, "weak") for text in texts):
                found.add(str(cursor.spelling))
    return frozenset(found)


def watched_variables(source: Source) -> frozenset[str]:
    """Variables every access to which counts: volatile and atomic ones."""
    variables = (cursor for cursor in source.cursors if cursor.kind is KINDS.VAR_DECL and not is_device(cursor))
    return frozenset(str(cursor.spelling) for cursor in variables if is_volatile(cursor))


def _is_own_variable(cursor: Cursor) -> bool:
    """Whether a declaration defines a variable of the driver; C lets it stand there without a value."""
    is_elsewhere = cursor.storage_class is cindex.StorageClass.EXTERN and not cursor.is_definition()
    return cursor.kind is KINDS.VAR_DECL and not is_elsewhere and not is_device(cursor)


def kept_pointers(source: Source, description: Description) -> dict[str, tuple[tuple[int, str], ...]]:
    """Pointers to groups in the driver's variables: for each variable their first bytes, and the groups."""
    found = {}
    for cursor in source.cursors:
        if _is_own_variable(cursor):
            inner = _inside(cursor.type.get_canonical(), description)
            if pointers := tuple((at, type_.group) for at, type_ in inner if type_.group is not None):
                found[str(cursor.spelling)] = pointers
    return found


def _objects(source: Source) -> dict[str, tuple[str, ...]]:
    """The variables that the driver's files define outside of functions, by the name of their struct."""
    found: dict[str, dict[str, None]] = {}
    for cursor in source.cursors:
        if _is_own_variable(cursor):
            kind = cursor.type.get_canonical()
            if name := _struct(kind.element_type if kind.kind is _KIND.CONSTANTARRAY else kind):
                found.setdefault(name, {})[str(cursor.spelling)] = None
    return {name: tuple(names) for name, names in found.items()}


def _struct(kind: Any) -> str:
    plain = kind.get_canonical()
    return str(plain.get_declaration().type.spelling) if plain.kind is _KIND.RECORD else ""


def _signature(cursor: Cursor, description: Description, objects: Mapping[str, tuple[str, ...]]) -> Signature:
    name = str(cursor.spelling)
    try:
        parameters = tuple(
            (
                str(a.spelling),
                replace(_type(a.type, description), objects=objects.get(_struct(a.type.get_pointee()), ())),
            )
            for a in cursor.get_arguments()
        )
        return Signature(name, _type(cursor.result_type, description), parameters)
    except _NoScalar as error:
        return Signature(name, Type(0), (), f"it has a parameter or result of type '{error}'")


def _type(kind: Any, description: Description) -> Type:
    plain = kind.get_canonical()
    if plain.kind is _KIND.VOID:
        return Type(0)
    if plain.kind in _INTEGERS:
        bits, is_signed = _INTEGERS[plain.kind]
        return Type(bits, is_signed, values=_values(plain))
    if plain.kind in (_KIND.POINTER, _KIND.CONSTANTARRAY, _KIND.INCOMPLETEARRAY):
        return _pointer(plain, description)
    raise _NoScalar(kind.spelling)


def _values(plain: Any) -> tuple[int, ...]:
    """The values of an enumeration: no other may be passed. Those that are made of bits may be put together."""
    if plain.kind is not _KIND.ENUM:
        return ()
    return tuple(
        dict.fromkeys(
            c.enum_value for c in plain.get_declaration().get_children() if c.kind is KINDS.ENUM_CONSTANT_DECL
        )
    )


def _pointer(plain: Any, description: Description) -> Type:
    inner = plain.get_pointee() if plain.kind is _KIND.POINTER else plain.element_type
    target = inner.get_canonical()
    if target.kind in (_KIND.FUNCTIONPROTO, _KIND.FUNCTIONNOPROTO):
        return Type(callback=_callback(target, description))
    name = str(target.get_declaration().spelling) if target.kind is _KIND.RECORD else ""
    if name in description.groups:
        return Type(group=name)
    return Type(
        pointee=max(target.get_size(), 1),
        is_const=bool(target.is_const_qualified()),
        inside=tuple(_inside(target, description)),
        flags=tuple(_flags(target)),
    )


def _flags(plain: Any, at: int = 0) -> Iterator[int]:
    """The bytes of a type that are `bool`, in structs and arrays too; bit fields hold no other values anyway."""
    if plain.kind is _KIND.BOOL:
        yield at
    elif plain.kind is _KIND.CONSTANTARRAY:
        element = plain.element_type.get_canonical()
        for number in range(min(plain.element_count, 64)):
            yield from _flags(element, at + number * element.get_size())
    elif plain.kind is _KIND.RECORD:
        for member in plain.get_fields():
            if not member.is_bitfield():
                yield from _flags(member.type.get_canonical(), at + member.get_field_offsetof() // 8)


def _inside(plain: Any, description: Description, at: int = 0) -> Iterator[tuple[int, Type]]:
    """The pointers in a type by their first bytes, in structs and arrays too; what they lead to is not followed."""
    if plain.kind is _KIND.POINTER:
        target = plain.get_pointee().get_canonical()
        is_struct = target.kind is _KIND.RECORD and target.get_declaration().spelling not in description.groups
        size = max(target.get_size(), 1)
        yield at, Type(pointee=size, flags=tuple(_flags(target))) if is_struct else _pointer(plain, description)
    elif plain.kind is _KIND.CONSTANTARRAY:
        element = plain.element_type.get_canonical()
        for number in range(min(plain.element_count, 64)):
            yield from _inside(element, description, at + number * element.get_size())
    elif plain.kind is _KIND.RECORD and plain.get_declaration().spelling not in description.groups:
        for member in plain.get_fields():
            yield from _inside(member.type.get_canonical(), description, at + member.get_field_offsetof() // 8)


def _callback(target: Any, description: Description) -> Signature:
    arguments = target.argument_types() if target.kind is _KIND.FUNCTIONPROTO else ()
    types = tuple((f"a{number}", _type(kind, description)) for number, kind in enumerate(arguments))
    return Signature("callback", _type(target.get_result(), description), types)

"""Write a card's instructions and registers in terms that LLVM compiles for any processor.

LLVM leaves open what some instructions do with some operands. A card and a CPU do different things
there. What the PTX manual says of the card is done here.
"""

from __future__ import annotations

import re

# What says for which processor a module is, and which of its functions are launched.
_TARGET = re.compile(r"^(target |!nvvm.annotations).*$", re.MULTILINE)
_SHIFT = re.compile(r"= (shl|lshr|ashr)(?: nsw| nuw| exact)* (i32|i64) (\S+), (\S+)$", re.MULTILINE)
_TO_INTEGER = re.compile(r"= fptosi double (\S+) to i64$", re.MULTILINE)
# libdevice asks for what it is compiled, by the name of a constant.
_REFLECTED = re.compile(r"^@(\S+) = .* c\"(__CUDA_\w+)\\00\"", re.MULTILINE)
_REFLECT = re.compile(r"call i32 @__nvvm_reflect\(ptr @(\S+)\)")
# What numba-cuda has libdevice compiled for, with an architecture of the tests.
_ANSWERS = {"__CUDA_FTZ": 0, "__CUDA_PREC_SQRT": 1, "__CUDA_ARCH": 900}
# Instructions of a card have this in their names; LLVM compiles others of the same form.
_OF_CARD, _OURS = "llvm.nvvm.", "card."

# What is left of a number that is shifted by its width or more.
_SHIFTS = {"shl": "0", "lshr": "0", "ashr": "%signs"}


def portable(text: str) -> str:
    """Return a module's text with calls of :data:`INSTRUCTIONS` for what is a card's, and for no certain processor."""
    names = {found[1]: found[2] for found in _REFLECTED.finditer(text)}
    text = _REFLECT.sub(lambda found: f"add i32 0, {_ANSWERS[names[found[1]]]}", text)
    text = _SHIFT.sub(r'= call \2 @"card.\1.\2"(\2 \3, \2 \4)', _TARGET.sub("", text))
    text = _TO_INTEGER.sub(r'= call i64 @"card.fptosi.i64.f64"(double \1)', text).replace(_OF_CARD, _OURS)
    return text + "".join(f"\ndeclare {each}" for each in _declared(text))


def _declared(text: str) -> list[str]:
    """Return the heads of the instructions that a text calls and does not declare."""
    called = {name for name in _HEADS if f'@"{name}"(' in text or f"@{name}(" in text}
    return [_HEADS[name] for name in sorted(called) if not re.search(rf'^declare .*@"?{re.escape(name)}"?\(', text, re.MULTILINE)]


def _shift(name: str, bits: int) -> str:
    """Return a shift as cards have it: by the lower 32 bits of a number, and by no less if that is above the width."""
    beyond = _SHIFTS[name]
    whole = "%by" if bits == 32 else "%low"
    low = "" if bits == 32 else f"%low = and i{bits} %by, {2**32 - 1}"
    return f"""
define i{bits} @card.{name}.i{bits}(i{bits} %value, i{bits} %by) alwaysinline {{
  {low}
  %inside = icmp ult i{bits} {whole}, {bits}
  %some = select i1 %inside, i{bits} {whole}, i{bits} 0
  %signs = ashr i{bits} %value, {bits - 1}
  %shifted = {name} i{bits} %value, %some
  %result = select i1 %inside, i{bits} %shifted, i{bits} {beyond}
  ret i{bits} %result
}}"""


# A lane's place in the grid; what a number becomes that no integer is near; numbers as their halves; rounding to the nearest.
INSTRUCTIONS = (
    "".join(_shift(name, bits) for name in _SHIFTS for bits in (32, 64))
    + "".join(
        f"""
@card.{name}.x = global i32 0
define i32 @card.read.ptx.sreg.{name}.x() alwaysinline {{
  %value = load i32, ptr @card.{name}.x
  ret i32 %value
}}"""
        for name in ("tid", "ntid", "ctaid", "nctaid")
    )
    + """
declare i64 @llvm.fptosi.sat.i64.f64(double)
declare double @llvm.fabs.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.minimumnum.f64(double, double)
declare double @llvm.maximumnum.f64(double, double)
define i64 @card.fptosi.i64.f64(double %value) alwaysinline {
  %saturated = call i64 @llvm.fptosi.sat.i64.f64(double %value)
  %nan = fcmp uno double %value, %value
  %result = select i1 %nan, i64 -9223372036854775808, i64 %saturated
  ret i64 %result
}
define double @card.mul.rn.d(double %a, double %b) alwaysinline {
  %result = fmul double %a, %b
  ret double %result
}
define double @card.add.rn.d(double %a, double %b) alwaysinline {
  %result = fadd double %a, %b
  ret double %result
}
define double @card.fabs.f64(double %a) alwaysinline {
  %result = call double @llvm.fabs.f64(double %a)
  ret double %result
}
define double @card.sqrt.rn.d(double %a) alwaysinline {
  %result = call double @llvm.sqrt.f64(double %a)
  ret double %result
}
define double @card.fmin.d(double %a, double %b) alwaysinline {
  %result = call double @llvm.minimumnum.f64(double %a, double %b)
  ret double %result
}
define double @card.fmax.d(double %a, double %b) alwaysinline {
  %result = call double @llvm.maximumnum.f64(double %a, double %b)
  ret double %result
}
define i32 @card.d2i.lo(double %a) alwaysinline {
  %bits = bitcast double %a to i64
  %result = trunc i64 %bits to i32
  ret i32 %result
}
define i32 @card.d2i.hi(double %a) alwaysinline {
  %bits = bitcast double %a to i64
  %high = lshr i64 %bits, 32
  %result = trunc i64 %high to i32
  ret i32 %result
}
define double @card.lohi.i2d(i32 %low, i32 %high) alwaysinline {
  %lower = zext i32 %low to i64
  %upper = zext i32 %high to i64
  %shifted = shl i64 %upper, 32
  %bits = or i64 %shifted, %lower
  %result = bitcast i64 %bits to double
  ret double %result
}
"""
)
# The head of each, by its name.
_HEADS = {found[2]: found[1] for found in re.finditer(r"^define (\w+ @(card\.[\w.]+)\([^)]*\))", INSTRUCTIONS, re.MULTILINE)}

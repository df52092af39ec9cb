//! Tensors that are real or complex: formulas that are written once for both.

use crate::{Complex, Cx, FromArg, Lowered};
use pt2onnx_fx::graph::Argument;
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

/// A tensor; of a complex one, its parts apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Num {
    /// The tensor, or its real part.
    pub re: Value,
    /// The imaginary part of a complex tensor.
    pub im: Option<Value>,
}

impl FromArg for Num {
    const TAKES_COMPLEX: bool = true;

    fn accepts(ty: &crate::ParamType) -> bool {
        crate::TensorOrScalar::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        let value = Value::from_arg(cx, arg)?;
        Ok(match arg {
            Argument::Tensor(name) | Argument::OptionalTensor(Some(name))
                if cx.is_complex(name) =>
            {
                let Complex { re, im } = cx.parts(value);
                Num { re, im: Some(im) }
            }
            _ => value.into(),
        })
    }
}

impl FromArg for Vec<Num> {
    const TAKES_COMPLEX: bool = true;

    fn accepts(ty: &crate::ParamType) -> bool {
        ty.is_list_of(&["Tensor"])
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Tensors(names) => {
                names.iter().map(|n| Num::from_arg(cx, &Argument::Tensor(n.clone()))).collect()
            }
            _ => Err("a list of tensors is wanted".to_owned()),
        }
    }
}

impl From<Value> for Num {
    fn from(re: Value) -> Self {
        Num { re, im: None }
    }
}

impl Num {
    /// As an output: pairs, if complex.
    pub fn value(self, cx: &Cx) -> Value {
        match self.im {
            Some(im) => cx.pairs(Complex { re: self.re, im }),
            None => self.re,
        }
    }

    /// The same of both parts: right for what only moves elements, and for linear maps with real coefficients.
    pub fn map(self, f: impl Fn(Value) -> Value) -> Num {
        Num { re: f(self.re), im: self.im.map(f) }
    }

    /// [`Num::map`] with what can fail.
    pub fn try_map(self, f: impl Fn(Value) -> Lowered) -> Lowered<Num> {
        Ok(Num { re: f(self.re)?, im: self.im.map(f).transpose()? })
    }

    /// Part by part; a part that one lacks is its zero.
    fn zip(self, cx: &Cx, b: Num, f: impl Fn(Value, Value) -> Value) -> Num {
        let zero = |x: Value| cx.scalar(0, cx.dtype(x));
        Num {
            re: f(self.re, b.re),
            im: match (self.im, b.im) {
                (None, None) => None,
                (a, b) => {
                    let (of_a, of_b) = (a.or(b), b.or(a));
                    of_a.zip(of_b)
                        .map(|(x, y)| f(a.unwrap_or_else(|| zero(x)), b.unwrap_or_else(|| zero(y))))
                }
            },
        }
    }

    /// `a + b`.
    pub fn add(self, cx: &Cx, b: Num) -> Num {
        self.zip(cx, b, |x, y| cx.add(x, y))
    }

    /// `a - b`.
    pub fn sub(self, cx: &Cx, b: Num) -> Num {
        self.zip(cx, b, |x, y| cx.sub(x, y))
    }

    /// Elements of `a` where `condition`, else of `b`.
    pub fn select(self, cx: &Cx, condition: Value, b: impl Into<Num>) -> Num {
        self.zip(cx, b.into(), |x, y| cx.select(condition, x, y))
    }

    /// Elements where `condition`, else zero.
    pub fn keep(self, cx: &Cx, condition: Value) -> Num {
        self.map(|x| cx.select(condition, x, 0.0))
    }

    /// What is linear in `a` and in `b`: products, contractions.
    pub fn bilinear(self, cx: &Cx, b: Num, f: impl Fn(Value, Value) -> Value) -> Num {
        let (x, y) = (self, b);
        match (x.im, y.im) {
            (None, None) => f(x.re, y.re).into(),
            (Some(im), None) => Num { re: f(x.re, y.re), im: Some(f(im, y.re)) },
            (None, Some(im)) => Num { re: f(x.re, y.re), im: Some(f(x.re, im)) },
            (Some(x_im), Some(y_im)) => Num {
                re: cx.sub(f(x.re, y.re), f(x_im, y_im)),
                im: Some(cx.add(f(x.re, y_im), f(x_im, y.re))),
            },
        }
    }

    /// `a * b`, element by element.
    pub fn mul(self, cx: &Cx, b: Num) -> Num {
        self.bilinear(cx, b, |x, y| cx.mul(x, y))
    }

    /// `a @ b`.
    pub fn matmul(self, cx: &Cx, b: Num) -> Num {
        self.bilinear(cx, b, |x, y| cx.matmul(x, y))
    }

    /// `a * b` with a real tensor `b`.
    pub fn times(self, cx: &Cx, b: Value) -> Num {
        self.map(|x| cx.mul(x, b))
    }

    /// `a / b` with a real tensor `b`.
    pub fn over(self, cx: &Cx, b: Value) -> Num {
        self.map(|x| cx.div(x, b))
    }

    /// `a / b`: with complex `b`, `a * conj(b) / |b|^2`.
    pub fn div(self, cx: &Cx, b: Num) -> Num {
        match b.im {
            None => self.over(cx, b.re),
            Some(_) => self.mul(cx, b.conj(cx)).over(cx, b.abs2(cx)),
        }
    }

    /// `a * number`.
    pub fn scale(self, cx: &Cx, number: Scalar) -> Num {
        match number {
            Scalar::Complex(re, im) => {
                let part = |p: f64| cx.scalar(p, cx.dtype(self.re));
                let number = Num { re: part(re), im: Some(part(im)) };
                self.mul(cx, number)
            }
            number => self.map(|x| cx.mul(x, number)),
        }
    }

    /// Complex conjugate.
    pub fn conj(self, cx: &Cx) -> Num {
        Num { re: self.re, im: self.im.map(|x| cx.neg(x)) }
    }

    /// The square of the absolute value.
    pub fn abs2(self, cx: &Cx) -> Value {
        let square = |x| cx.mul(x, x);
        match self.im {
            None => square(self.re),
            Some(im) => cx.add(square(self.re), square(im)),
        }
    }

    /// The absolute value.
    pub fn abs(self, cx: &Cx) -> Value {
        match self.im {
            None => cx.abs(self.re),
            Some(_) => cx.sqrt(self.abs2(cx)),
        }
    }

    /// The last two dimensions exchanged.
    pub fn transpose(self, cx: &Cx) -> Num {
        let rank = cx.rank(self.re);
        self.map(|x| cx.swap_axes(x, rank.saturating_sub(2), rank.saturating_sub(1)))
    }

    /// The last two dimensions exchanged, of conjugates.
    pub fn adjoint(self, cx: &Cx) -> Num {
        self.transpose(cx).conj(cx)
    }

    /// As that type.
    pub fn cast(self, cx: &Cx, dtype: DType) -> Num {
        self.map(|x| cx.cast(x, dtype))
    }

    /// Complex, with zeros as imaginary part if need be.
    pub fn complex(self, cx: &Cx) -> Num {
        let zeros = || cx.full(&cx.shape(self.re), 0, cx.dtype(self.re));
        Num { re: self.re, im: Some(self.im.unwrap_or_else(zeros)) }
    }

    /// Broadcast to `dims`.
    pub fn expand(self, cx: &Cx, dims: &[Expr]) -> Num {
        self.map(|x| cx.expand(x, dims))
    }

    /// The parts: one, or two.
    pub fn parts(self) -> Vec<Value> {
        [Some(self.re), self.im].into_iter().flatten().collect()
    }
}

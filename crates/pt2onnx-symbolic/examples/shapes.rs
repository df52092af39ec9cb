//! Computes with the sizes of a convolution's output, for a batch and a width that are not known
//! yet.

#![expect(clippy::print_stdout, reason = "its purpose")]

use pt2onnx_symbolic::{Constraints, Expr, ParseError, Range};

fn main() -> Result<(), ParseError> {
    // Width of the output: (width + 2 * padding - kernel) // stride + 1.
    let width = Expr::symbol("width");
    let (padding, kernel, stride) = (1, 3, 2);
    let out = (&width + 2 * padding - kernel).floor_div(&Expr::int(stride)) + 1;
    println!("output: {out}");

    // Expressions are canonical, so that equal polynomials are equal. Both spellings of PyTorch can
    // be read.
    assert_eq!(out, Expr::parse("((width - 1)//2) + 1")?);
    assert_eq!(&width * 2 - &width, width);

    // Evaluate it, or replace a symbol.
    assert_eq!(out.eval(&|name| (name == "width").then_some(224)), Some(112));
    let doubled = out.substitute(&|name| (name == "width").then(|| Expr::symbol("n") * 2));
    assert_eq!(doubled.eval(&|name| (name == "n").then_some(112)), Some(112));
    assert!(doubled.contains_symbol("n") && !doubled.contains_symbol("width"));

    // Facts about symbols prove comparisons. `None` means that nothing could be proved.
    let mut known = Constraints::new();
    known.constrain(&width, Range::at_least(2));
    println!("range: {}", known.range_of(&out));
    assert!(!known.range_of(&out).contains(0));
    assert_eq!(known.prove_eq(&out, &Expr::int(0)), Some(false));
    assert_eq!(known.prove_eq(&out, &Expr::int(7)), None);

    // An equality of two symbols makes one of them the other.
    let (a, b) = (Expr::symbol("a"), Expr::symbol("b"));
    known.equate(&a, &b);
    assert_eq!(known.prove_eq(&(&a * 3), &(&b * 3)), Some(true));
    assert_eq!(known.simplify(&(&a - &b)).as_int(), Some(0));
    Ok(())
}

#[test]
fn it_runs() -> Result<(), ParseError> {
    main()
}

//! Reads expressions, one a line, and prints each with its normal display.
use std::io::BufRead;
fn main() {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match pt2onnx_symbolic::Expr::parse(&line) {
            Ok(e) => {
                use std::io::Write;
                let again = pt2onnx_symbolic::Expr::parse(&e.to_string());
                let _ = writeln!(
                    std::io::stdout(),
                    "{}\t{}\t{}",
                    line,
                    e,
                    if again.as_ref() == Ok(&e) {
                        "ok"
                    } else {
                        "ROUNDTRIP"
                    }
                );
            }
            Err(err) => {
                use std::io::Write;
                let _ = writeln!(std::io::stdout(), "{line}\tERR {err}\t");
            }
        }
    }
}

//! Methods of strings that take nothing but the string. As in C++, they know the letters of ASCII
//! only, and count bytes.

/// The truth of a test such as `isalpha`; `None` for other methods.
pub(crate) fn test(name: &str, text: &[u8]) -> Option<bool> {
    let all = |fits: fn(&u8) -> bool| !text.is_empty() && text.iter().all(fits);
    let letters = || text.iter().filter(|c| c.is_ascii_alphabetic());
    let cased = |fits: fn(&u8) -> bool| letters().next().is_some() && letters().all(fits);
    Some(match name {
        "isdigit" | "isnumeric" | "isdecimal" => all(u8::is_ascii_digit),
        "isalpha" => all(u8::is_ascii_alphabetic),
        "isalnum" => all(u8::is_ascii_alphanumeric),
        "isspace" => all(is_space),
        "islower" => cased(u8::is_ascii_lowercase),
        "isupper" => cased(u8::is_ascii_uppercase),
        "isprintable" => text.iter().all(|c| c.is_ascii_graphic() || *c == b' '),
        "isidentifier" => {
            // PyTorch knows no underscore here.
            all(u8::is_ascii_alphanumeric) && !text.first().is_some_and(u8::is_ascii_digit)
        }
        "istitle" => is_title(text),
        _ => return None,
    })
}

/// The string that `upper` and the like make; `None` if it is another method.
pub(crate) fn changed(name: &str, text: &[u8]) -> Option<Vec<u8>> {
    Some(match name {
        "upper" => text.to_ascii_uppercase(),
        "lower" => text.to_ascii_lowercase(),
        "swapcase" => {
            let swap = |c: &u8| {
                if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
            };
            text.iter().map(swap).collect()
        }
        "capitalize" => {
            let mut made = text.to_ascii_lowercase();
            made.iter_mut().take(1).for_each(|c| c.make_ascii_uppercase());
            made
        }
        "title" => {
            let mut made = text.to_vec();
            let mut within = false;
            for c in &mut made {
                *c = if within { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
                within = c.is_ascii_alphabetic();
            }
            made
        }
        _ => return None,
    })
}

/// C's `isspace`.
pub(crate) fn is_space(c: &u8) -> bool {
    matches!(c, b' ' | b'\t'..=b'\r')
}

/// Whether words begin with a capital letter, and have no others.
fn is_title(text: &[u8]) -> bool {
    let (mut within, mut found) = (false, false);
    for c in text {
        let letter = c.is_ascii_alphabetic();
        if letter && c.is_ascii_uppercase() == within {
            return false;
        }
        (within, found) = (letter, found || letter);
    }
    found
}

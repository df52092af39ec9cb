//! Flags replace values of options.

/// Replaces a value if the flag is given.
pub fn set<T>(slot: &mut T, flag: Option<T>) {
    if let Some(value) = flag {
        *slot = value;
    }
}

/// Replaces an optional value if the flag is given.
pub fn set_some<T>(slot: &mut Option<T>, flag: Option<T>) {
    if flag.is_some() {
        *slot = flag;
    }
}

/// Replaces a list if the flag is given at least once.
pub fn set_list<T>(slot: &mut Vec<T>, flags: Vec<T>) {
    if !flags.is_empty() {
        *slot = flags;
    }
}

//! Declares options once: struct, defaults, setters, and the table that describes them.

use super::value::{FlagKind, OptionValue, summary};
use serde::Serialize;
use serde_json::{Value, json};
use std::{fmt, panic::UnwindSafe, path::Path};

/// Tasks that take options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
#[non_exhaustive]
pub enum Task {
    /// Conversion, and `pt2onnx check`.
    Convert,
    /// `pt2onnx inspect` and `show`.
    Inspect,
    /// `pt2onnx optimize`.
    Optimize,
    /// `pt2onnx apply-weights`.
    ApplyWeights,
    /// Saving a model, in Python.
    Save,
}

/// Sets an option of `O` to a value that was read.
pub type Assign<O> = Box<dyn FnOnce(&mut O) + Send + Sync + UnwindSafe>;

/// Describes an option of the struct `O`.
pub struct OptionMeta<O: 'static> {
    /// The key in files, and the flag without `--`: `cast-io`.
    pub key: &'static str,
    /// The doc comment.
    pub doc: &'static str,
    /// The heading in help texts.
    pub heading: &'static str,
    /// The tasks that take it.
    pub tasks: &'static [Task],
    /// Former keys.
    pub aliases: &'static [&'static str],
    /// The placeholder of the value in help texts: `BYTES`.
    pub value_name: Option<&'static str>,
    /// The effect of leaving it out, if no default value says it.
    pub unset: Option<&'static str>,
    /// How a flag gives its value.
    pub flag: FlagKind,
    /// The words that it can be, each with its meaning; empty if it is not a choice.
    pub choices: fn() -> Vec<(String, String)>,
    /// The type in Python.
    pub python: fn() -> String,
    /// Reads the texts of a flag.
    ///
    /// The function returns what to give instead if a text cannot be read.
    pub read: fn(&[&str]) -> Result<Assign<O>, String>,
    /// Makes paths relative to a folder absolute.
    pub resolve: fn(&mut O, &Path),
}

impl<O> fmt::Debug for OptionMeta<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OptionMeta").field(&self.key).finish()
    }
}

impl<O> OptionMeta<O> {
    /// Describes no option. Declarations replace its fields.
    #[doc(hidden)]
    pub const EMPTY: Self = Self {
        key: "",
        doc: "",
        heading: "",
        tasks: &[],
        aliases: &[],
        value_name: None,
        unset: None,
        flag: FlagKind::One,
        choices: Vec::new,
        python: String::new,
        read: |_| Ok(Box::new(|_| ())),
        resolve: |_, _| (),
    };

    /// The first paragraph of the doc comment, for help texts.
    pub fn summary(&self) -> String {
        summary(self.doc)
    }

    /// The default as help texts show it: [`unset`](Self::unset), or the value if it is a word or
    /// a number. `defaults` is the serialised form of all defaults.
    pub fn default_text(&self, defaults: &Value) -> Option<String> {
        match (self.unset, defaults.get(self.key)) {
            (Some(unset), _) => Some(unset.to_owned()),
            (None, Some(Value::String(word))) => Some(word.clone()),
            (None, Some(Value::Number(number))) => Some(number.to_string()),
            _ => None,
        }
    }

    /// The description as JSON, from which `cargo xtask regen-options` makes documentation.
    pub fn to_json(&self, defaults: &Value) -> Value {
        json!({
            "key": self.key,
            "aliases": self.aliases,
            "summary": self.summary(),
            "heading": self.heading,
            "tasks": self.tasks,
            "value_name": self.value_name,
            "default": self.default_text(defaults),
            "flag": self.flag,
            "choices": (self.choices)(),
            "python": (self.python)(),
        })
    }
}

/// The name of a field with `-` for `_`.
#[doc(hidden)]
pub const fn kebab<const N: usize>(field: &str) -> [u8; N] {
    let (bytes, mut key, mut i) = (field.as_bytes(), [0; N], 0);
    while i < N {
        key[i] = if bytes[i] == b'_' { b'-' } else { bytes[i] };
        i += 1;
    }
    key
}

/// The description of an option, with what its type says.
#[doc(hidden)]
pub const fn of_type<O, T: OptionValue>() -> OptionMeta<O> {
    OptionMeta { flag: T::FLAG, choices: T::choices, python: T::python, ..OptionMeta::EMPTY }
}

/// Declares a struct of options. Each field gives its doc comment, type and default, and where
/// help texts list it. From the declaration come:
///
/// - the struct, with serde's implementations: keys have `-` for `_`, `#[alias]` adds former keys,
///   unknown keys are errors,
/// - `Default`,
/// - `META`, the table of [`OptionMeta`], from which come flags and documentation,
/// - the macro named after `setters`, whose expansion is the setters of a struct that has the
///   options in its field `options`. `#[no_setter]` leaves one out.
///
/// `docs/adding-an-option.md` shows how to add an option of pt2onnx.
#[doc(hidden)]
#[macro_export]
macro_rules! declare_options {
    (
        $(#[$attribute:meta])*
        pub struct $options:ident, setters $setters:ident;
        $($heading:literal for $tasks:tt {
            $(
                $(#[doc = $doc:literal])*
                $(#[alias = $alias:literal])*
                $(#[no_setter $($no_setter:tt)?])?
                pub $field:ident: $outer:ident $(<$inner:ident>)?
                $(via $read:path)? $(= $default:expr)? $(, $meta:ident = $value:expr)*;
            )*
        })*
        $(
            $(#[doc = $more_doc:literal])*
            skip $more:ident: $more_type:ty;
        )*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
        #[non_exhaustive]
        pub struct $options {
            $($(
                $(#[doc = $doc])*
                #[serde(
                    serialize_with = "::pt2onnx::OptionValue::write",
                    deserialize_with = "::pt2onnx::OptionValue::read"
                    $(, alias = $alias)*
                )]
                pub $field: $outer $(<$inner>)?,
            )*)*
            $(
                $(#[doc = $more_doc])*
                #[serde(skip)]
                pub $more: $more_type,
            )*
        }

        impl Default for $options {
            fn default() -> Self {
                Self {
                    $($($field: $crate::declare_options!(@or_default $($default)?),)*)*
                    $($more: Default::default(),)*
                }
            }
        }

        impl $options {
            /// Describes all options, in the order of their fields.
            pub const META: &'static [$crate::OptionMeta<Self>] = &[$($(
                $crate::OptionMeta {
                    key: $crate::declare_options!(@key $field),
                    doc: concat!($($doc, "\n"),*),
                    heading: $heading,
                    tasks: $crate::declare_options!(@tasks $tasks),
                    aliases: &[$($alias),*],
                    read: |texts| {
                        let read = $crate::declare_options!(@or_read $($read)?);
                        let value: $outer $(<$inner>)? = read(texts)?;
                        Ok(Box::new(move |options: &mut Self| options.$field = value))
                    },
                    resolve: |options, folder| {
                        ::pt2onnx::OptionValue::resolve(&mut options.$field, folder)
                    },
                    $($meta: Some($value),)*
                    ..$crate::of_type::<Self, $outer $(<$inner>)?>()
                },
            )*)*];
        }

        macro_rules! $setters {
            () => {$($(
                $crate::declare_options! {
                    @setter $options $field [$(none $($no_setter)?)?] $outer $($inner)?
                }
            )*)*};
        }
    };

    (@or_default) => { Default::default() };
    (@or_default $default:expr) => { $default };
    (@or_read) => { ::pt2onnx::OptionValue::parse };
    (@or_read $read:path) => { $read };
    (@tasks [$($task:ident),+]) => { &[$($crate::Task::$task),+] };
    (@key $field:ident) => {{
        const KEY: [u8; stringify!($field).len()] = $crate::kebab(stringify!($field));
        match ::std::str::from_utf8(&KEY) {
            Ok(key) => key,
            Err(_) => stringify!($field),
        }
    }};

    (@setter $options:ident $field:ident [none] $($type:ident)+) => {};
    (@setter $options:ident $field:ident [] Option String) => {
        #[doc = concat!("Sets [`", stringify!($options), "::", stringify!($field), "`].")]
        pub fn $field(mut self, $field: impl Into<String>) -> Self {
            self.options.$field = Some($field.into());
            self
        }
    };
    (@setter $options:ident $field:ident [] Option $inner:ident) => {
        #[doc = concat!("Sets [`", stringify!($options), "::", stringify!($field), "`].")]
        pub fn $field(mut self, $field: $inner) -> Self {
            self.options.$field = Some($field);
            self
        }
    };
    (@setter $options:ident $field:ident [] Vec $inner:ident) => {
        #[doc = concat!("Adds to [`", stringify!($options), "::", stringify!($field), "`].")]
        pub fn $field(mut self, items: impl IntoIterator<Item = impl Into<$inner>>) -> Self {
            self.options.$field.extend(items.into_iter().map(Into::into));
            self
        }
    };
    (@setter $options:ident $field:ident [] Pairs String) => {
        $crate::declare_options!(@entry $options $field (impl Into<String>));
    };
    (@setter $options:ident $field:ident [] Pairs $inner:ident) => {
        $crate::declare_options!(@entry $options $field ($inner));
    };
    (@entry $options:ident $field:ident ($value:ty)) => {
        #[doc = concat!("Adds to [`", stringify!($options), "::", stringify!($field), "`].")]
        pub fn $field(mut self, key: impl Into<String>, value: $value) -> Self {
            self.options.$field.push((key.into(), value.into()));
            self
        }
    };
    (@setter $options:ident $field:ident [] String) => {
        #[doc = concat!("Sets [`", stringify!($options), "::", stringify!($field), "`].")]
        pub fn $field(mut self, $field: impl Into<String>) -> Self {
            self.options.$field = $field.into();
            self
        }
    };
    (@setter $options:ident $field:ident [] IoNames) => {
        #[doc = concat!("Sets [`", stringify!($options), "::", stringify!($field), "`].")]
        pub fn $field(mut self, $field: impl Into<::pt2onnx::IoNames>) -> Self {
            self.options.$field = $field.into();
            self
        }
    };
    (@setter $options:ident $field:ident [] $type:ident) => {
        #[doc = concat!("Sets [`", stringify!($options), "::", stringify!($field), "`].")]
        pub fn $field(mut self, $field: $type) -> Self {
            self.options.$field = $field;
            self
        }
    };
}

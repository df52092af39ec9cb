//! Names of nodes and values.

use smol_str::SmolStr;

/// Name of an FX node or value, unique in its graph. Cheap to clone: short names are stored inline.
pub type Name = SmolStr;

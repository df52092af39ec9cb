//! The earlier name of [`Complex`](crate::Complex).

pub(crate) use crate::Complex as Num;

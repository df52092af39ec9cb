//! Symmetric factors `P L D L^T P^T`, and systems whose matrix is given by them.

use crate::math::matrix::bunch_kaufman::factors;
use crate::math::matrix::ldl::solve;
use crate::math::matrix::pivots::first_of;
use crate::{AtenOp, Complex, Cx, Lowered, args::Ignored, checks, op};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::linalg_ldl_factor, ldl_factor),
    op!(aten::linalg_ldl_factor_ex, ldl_factor_ex),
    op!(aten::linalg_ldl_solve, ldl_solve),
];

/// L and D packed in one matrix, and the pivots as LAPACK records them; int32. Only the lower
/// triangle of `a` is read.
fn ldl_factor(cx: &Cx, a: Complex, hermitian: bool) -> Lowered<[Value; 2]> {
    let found = factors(cx, a, hermitian);
    Ok([found.packed.value(cx), found.pivots])
}

/// [`ldl_factor`] and LAPACK's `info`: the first column that is zero, counted from 1, or 0 if there
/// is none; int32.
fn ldl_factor_ex(
    cx: &Cx,
    a: Complex,
    hermitian: bool,
    _check_errors: Ignored,
) -> Lowered<[Value; 3]> {
    let found = factors(cx, a, hermitian);
    Ok([found.packed.value(cx), found.pivots, first_of(cx, found.zeros)])
}

/// The solution X of `A X = B`; with `hermitian`, A is `P L D L^H P^T`.
fn ldl_solve(cx: &Cx, factors: Complex, pivots: Value, b: Complex, hermitian: bool) -> Lowered {
    Ok(solve(cx, factors, pivots, b, hermitian).value(cx))
}

checks! {
    a_system_without_columns_is_solved {
        "aten.linalg_ldl_solve(ld: f32[2, 2], pivots: i32[2], b: f32[2, 0]) -> f32[2, 0]" => "
        (float[2,2] ld, int32[2] pivots, float[2,0] b) => (float[2,0] linalg_ldl_solve)
        <
          float val_0 = {0.0},
          int64[2] val_1 = {2, 0}
        >
        {
          linalg_ldl_solve = Expand (val_0, val_1)
        }
        ";
    }

    factors_are_a_loop_over_columns {
        "aten.linalg_ldl_factor(x: f32[2, 2]) -> (f32[2, 2], i32[2])" => "
        (float[2,2] x) => (float[2,2] linalg_ldl_factor_0, int32[2] linalg_ldl_factor_1)
        <
          int64[2] val_0 = {0, 1},
          int64[2,1] val_1 = {0, 1},
          int64[1] val_2 = {1},
          int64 val_3 = {-1},
          int64 val_4 = {0},
          int64[2] val_5 = {1, 1},
          float val_6 = {0.0},
          int64[2] val_7 = {2, 2},
          int64[1] val_8 = {0},
          int64[2] val_9 = {2, 1},
          float val_10 = {0.6403882},
          int64 val_11 = {1},
          int64[2] val_12 = {1, 2},
          float val_13 = {1.0},
          bool val_14 = {1},
          int64 val_15 = {2}
        >
        {
          val_16 = Equal (val_1, val_0)
          val_17 = Trilu <upper: int = 0> (x, val_3)
          val_18 = Transpose <perm: ints = [1, 0]> (val_17)
          val_19 = Trilu <upper: int = 0> (x)
          val_20 = Add (val_19, val_18)
          val_21 = Expand (val_4, val_5)
          val_22 = Expand (val_6, val_7)
          val_135, linalg_ldl_factor_0, val_136, linalg_ldl_factor_1, val_137 = Loop <body: graph = body (int64 val_23, bool val_24, float[2,2] val_25, float[2,2] val_26, int64[1,1] val_27) => (bool val_134, float[2,2] val_130, float[2,2] val_131, int64[1,1] val_125, int32 val_132, bool val_133)
          {
            val_28 = Unsqueeze (val_23, val_8)
            val_29 = Gather <axis: int = 1> (val_25, val_28)
            val_30 = Abs (val_29)
            val_31 = Gather <axis: int = 0> (val_30, val_28)
            val_32 = Greater (val_1, val_28)
            val_33 = Where (val_32, val_30, val_6)
            val_34 = ArgMax (val_33)
            val_35 = ReduceMax <keepdims: int = 1> (val_33, val_8)
            val_36 = Squeeze (val_34, val_2)
            val_37 = Unsqueeze (val_36, val_8)
            val_38 = Expand (val_37, val_9)
            val_39 = GatherElements <axis: int = 1> (val_25, val_38)
            val_40 = Abs (val_39)
            val_41 = Equal (val_1, val_34)
            val_42 = Where (val_41, val_40, val_6)
            val_43 = ReduceMax <keepdims: int = 1> (val_42, val_8)
            val_44 = Less (val_1, val_28)
            val_45 = Or (val_41, val_44)
            val_46 = Where (val_45, val_6, val_40)
            val_47 = ReduceMax <keepdims: int = 1> (val_46, val_8)
            val_48 = Max (val_31, val_35)
            val_49 = Equal (val_48, val_6)
            val_50 = Mul (val_35, val_10)
            val_51 = GreaterOrEqual (val_31, val_50)
            val_52 = Div (val_35, val_47)
            val_53 = Mul (val_50, val_52)
            val_54 = GreaterOrEqual (val_31, val_53)
            val_55 = Or (val_51, val_54)
            val_56 = Mul (val_47, val_10)
            val_57 = GreaterOrEqual (val_43, val_56)
            val_58 = Or (val_55, val_57)
            val_59 = Where (val_55, val_28, val_34)
            val_60 = Add (val_28, val_11)
            val_61 = Min (val_60, val_2)
            val_62 = Where (val_58, val_28, val_61)
            val_63 = Equal (val_1, val_59)
            val_64 = Where (val_63, val_62, val_1)
            val_65 = Equal (val_1, val_62)
            val_66 = Where (val_65, val_59, val_64)
            val_67 = Expand (val_66, val_12)
            val_68 = GatherElements (val_25, val_67)
            val_69 = Squeeze (val_66, val_2)
            val_70 = Unsqueeze (val_69, val_8)
            val_71 = Expand (val_70, val_9)
            val_72 = GatherElements <axis: int = 1> (val_68, val_71)
            val_73 = Gather <axis: int = 1> (val_72, val_28)
            val_74 = Gather <axis: int = 1> (val_72, val_61)
            val_75 = Gather <axis: int = 0> (val_73, val_28)
            val_76 = Gather <axis: int = 0> (val_73, val_61)
            val_77 = Gather <axis: int = 0> (val_74, val_61)
            val_78 = Greater (val_1, val_28)
            val_79 = Where (val_49, val_13, val_75)
            val_80 = Div (val_73, val_79)
            val_81 = Where (val_78, val_80, val_6)
            val_82 = Mul (val_75, val_77)
            val_83 = Mul (val_76, val_76)
            val_84 = Sub (val_82, val_83)
            val_85 = Greater (val_1, val_61)
            val_86 = Mul (val_73, val_77)
            val_87 = Mul (val_74, val_76)
            val_88 = Sub (val_86, val_87)
            val_89 = Div (val_88, val_84)
            val_90 = Where (val_85, val_89, val_6)
            val_91 = Mul (val_74, val_75)
            val_92 = Mul (val_73, val_76)
            val_93 = Sub (val_91, val_92)
            val_94 = Div (val_93, val_84)
            val_95 = Not (val_58)
            val_96 = And (val_85, val_95)
            val_97 = Where (val_96, val_94, val_6)
            val_98 = Where (val_58, val_81, val_90)
            val_99 = Gather <axis: int = 0> (val_72, val_28)
            val_100 = Mul (val_98, val_99)
            val_101 = Sub (val_72, val_100)
            val_102 = Gather <axis: int = 0> (val_72, val_61)
            val_103 = Mul (val_97, val_102)
            val_104 = Sub (val_101, val_103)
            val_105 = Equal (val_1, val_61)
            val_106 = Not (val_58)
            val_107 = And (val_105, val_106)
            val_108 = Equal (val_1, val_28)
            val_109 = Where (val_107, val_76, val_98)
            val_110 = Where (val_108, val_75, val_109)
            val_111 = Equal (val_1, val_61)
            val_112 = Where (val_111, val_77, val_97)
            val_113 = Equal (val_0, val_28)
            val_114 = Where (val_113, val_110, val_26)
            val_115 = Equal (val_0, val_61)
            val_116 = Not (val_58)
            val_117 = And (val_115, val_116)
            val_118 = Where (val_117, val_112, val_114)
            val_119 = Equal (val_27, val_4)
            val_120 = Not (val_119)
            val_121 = Add (val_59, val_11)
            val_122 = Neg (val_121)
            val_123 = Where (val_58, val_121, val_122)
            val_124 = Or (val_120, val_58)
            val_125 = Where (val_124, val_4, val_123)
            val_126 = Where (val_120, val_27, val_123)
            val_127 = Cast <to: int = 6> (val_126)
            val_128 = Not (val_120)
            val_129 = And (val_49, val_128)
            val_130 = Where (val_120, val_25, val_104)
            val_131 = Where (val_120, val_26, val_118)
            val_132 = Squeeze (val_127, val_0)
            val_133 = Squeeze (val_129, val_0)
            val_134 = Identity (val_14)
          }> (val_15, val_14, val_20, val_22, val_21)
        }
        ";
    }
}

//! Symmetric factors `P L D L^T P^T`, and systems whose matrix is given by them.

use crate::math::matrix::bunch_kaufman::factors;
use crate::math::matrix::ldl::solve;
use crate::math::matrix::pivots::first_of;
use crate::{AtenOp, Complex, Cx, Lowered, checks, op};
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
fn ldl_factor_ex(cx: &Cx, a: Complex, hermitian: bool) -> Lowered<[Value; 3]> {
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
        linalg_ldl_solve = Expand (0.0, [2, 0])
        ";
    }

    factors_are_a_loop_over_columns {
        "aten.linalg_ldl_factor(x: f32[2, 2]) -> (f32[2, 2], i32[2])" => "
        val_0 = Equal (int64[2,1] {0, 1}, [0, 1])
        val_1 = Trilu <upper: int = 0> (x, -1)
        val_2 = Transpose <perm: ints = [1, 0]> (val_1)
        val_3 = Trilu <upper: int = 0> (x)
        val_4 = Add (val_3, val_2)
        val_5 = Expand (0, [1, 1])
        val_6 = Expand (0.0, [2, 2])
        val_7, linalg_ldl_factor_0, val_8, linalg_ldl_factor_1, val_9 = Loop <body: graph = body (int64 val_10, bool val_11, float[2,2] val_12, float[2,2] val_13, int64[1,1] val_14) => (bool val_15, float[2,2] val_16, float[2,2] val_17, int64[1,1] val_18, int32 val_19, bool val_20)
        {
          val_21 = Unsqueeze (val_10, [0])
          val_22 = Gather <axis: int = 1> (val_12, val_21)
          val_23 = Abs (val_22)
          val_24 = Gather <axis: int = 0> (val_23, val_21)
          val_25 = Greater (int64[2,1] {0, 1}, val_21)
          val_26 = Where (val_25, val_23, 0.0)
          val_27 = ArgMax (val_26)
          val_28 = ReduceMax <keepdims: int = 1> (val_26, [0])
          val_29 = Squeeze (val_27, [1])
          val_30 = Unsqueeze (val_29, [0])
          val_31 = Expand (val_30, [2, 1])
          val_32 = GatherElements <axis: int = 1> (val_12, val_31)
          val_33 = Abs (val_32)
          val_34 = Equal (int64[2,1] {0, 1}, val_27)
          val_35 = Where (val_34, val_33, 0.0)
          val_36 = ReduceMax <keepdims: int = 1> (val_35, [0])
          val_37 = Less (int64[2,1] {0, 1}, val_21)
          val_38 = Or (val_34, val_37)
          val_39 = Where (val_38, 0.0, val_33)
          val_40 = ReduceMax <keepdims: int = 1> (val_39, [0])
          val_41 = Max (val_24, val_28)
          val_42 = Equal (val_41, 0.0)
          val_43 = Mul (val_28, 0.6403882)
          val_44 = GreaterOrEqual (val_24, val_43)
          val_45 = Div (val_28, val_40)
          val_46 = Mul (val_43, val_45)
          val_47 = GreaterOrEqual (val_24, val_46)
          val_48 = Or (val_44, val_47)
          val_49 = Mul (val_40, 0.6403882)
          val_50 = GreaterOrEqual (val_36, val_49)
          val_51 = Or (val_48, val_50)
          val_52 = Where (val_48, val_21, val_27)
          val_53 = Add (val_21, 1)
          val_54 = Min (val_53, [1])
          val_55 = Where (val_51, val_21, val_54)
          val_56 = Equal (int64[2,1] {0, 1}, val_52)
          val_57 = Where (val_56, val_55, int64[2,1] {0, 1})
          val_58 = Equal (int64[2,1] {0, 1}, val_55)
          val_59 = Where (val_58, val_52, val_57)
          val_60 = Expand (val_59, [1, 2])
          val_61 = GatherElements (val_12, val_60)
          val_62 = Squeeze (val_59, [1])
          val_63 = Unsqueeze (val_62, [0])
          val_64 = Expand (val_63, [2, 1])
          val_65 = GatherElements <axis: int = 1> (val_61, val_64)
          val_66 = Gather <axis: int = 1> (val_65, val_21)
          val_67 = Gather <axis: int = 1> (val_65, val_54)
          val_68 = Gather <axis: int = 0> (val_66, val_21)
          val_69 = Gather <axis: int = 0> (val_66, val_54)
          val_70 = Gather <axis: int = 0> (val_67, val_54)
          val_71 = Greater (int64[2,1] {0, 1}, val_21)
          val_72 = Where (val_42, 1.0, val_68)
          val_73 = Div (val_66, val_72)
          val_74 = Where (val_71, val_73, 0.0)
          val_75 = Mul (val_68, val_70)
          val_76 = Mul (val_69, val_69)
          val_77 = Sub (val_75, val_76)
          val_78 = Greater (int64[2,1] {0, 1}, val_54)
          val_79 = Mul (val_66, val_70)
          val_80 = Mul (val_67, val_69)
          val_81 = Sub (val_79, val_80)
          val_82 = Div (val_81, val_77)
          val_83 = Where (val_78, val_82, 0.0)
          val_84 = Mul (val_67, val_68)
          val_85 = Mul (val_66, val_69)
          val_86 = Sub (val_84, val_85)
          val_87 = Div (val_86, val_77)
          val_88 = Not (val_51)
          val_89 = And (val_78, val_88)
          val_90 = Where (val_89, val_87, 0.0)
          val_91 = Where (val_51, val_74, val_83)
          val_92 = Gather <axis: int = 0> (val_65, val_21)
          val_93 = Mul (val_91, val_92)
          val_94 = Sub (val_65, val_93)
          val_95 = Gather <axis: int = 0> (val_65, val_54)
          val_96 = Mul (val_90, val_95)
          val_97 = Sub (val_94, val_96)
          val_98 = Equal (int64[2,1] {0, 1}, val_54)
          val_99 = Not (val_51)
          val_100 = And (val_98, val_99)
          val_101 = Equal (int64[2,1] {0, 1}, val_21)
          val_102 = Where (val_100, val_69, val_91)
          val_103 = Where (val_101, val_68, val_102)
          val_104 = Equal (int64[2,1] {0, 1}, val_54)
          val_105 = Where (val_104, val_70, val_90)
          val_106 = Equal ([0, 1], val_21)
          val_107 = Where (val_106, val_103, val_13)
          val_108 = Equal ([0, 1], val_54)
          val_109 = Not (val_51)
          val_110 = And (val_108, val_109)
          val_111 = Where (val_110, val_105, val_107)
          val_112 = Equal (val_14, 0)
          val_113 = Not (val_112)
          val_114 = Add (val_52, 1)
          val_115 = Neg (val_114)
          val_116 = Where (val_51, val_114, val_115)
          val_117 = Or (val_113, val_51)
          val_18 = Where (val_117, 0, val_116)
          val_118 = Where (val_113, val_14, val_116)
          val_119 = Cast <to: int = 6> (val_118)
          val_120 = Not (val_113)
          val_121 = And (val_42, val_120)
          val_16 = Where (val_113, val_12, val_97)
          val_17 = Where (val_113, val_13, val_111)
          val_19 = Squeeze (val_119, [0, 1])
          val_20 = Squeeze (val_121, [0, 1])
          val_15 = Identity (true)
        }> (2, true, val_4, val_6, val_5)
        ";
    }
}

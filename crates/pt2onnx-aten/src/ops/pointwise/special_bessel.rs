//! Bessel functions and the Airy function. Formulas are in `math/bessel.rs`.

use crate::math::bessel;
use crate::math::precision::double;
use crate::{AtenOp, Cx, Lowered, checks, op};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::i0, i0),
    op!(aten::special_airy_ai, airy_ai),
    op!(aten::special_bessel_j0, j0),
    op!(aten::special_bessel_j1, j1),
    op!(aten::special_bessel_y0, y0),
    op!(aten::special_bessel_y1, y1),
    op!(aten::special_i0, i0),
    op!(aten::special_i0e, i0e),
    op!(aten::special_i1, i1),
    op!(aten::special_i1e, i1e),
    op!(aten::special_modified_bessel_i0, i0),
    op!(aten::special_modified_bessel_i1, i1),
    op!(aten::special_modified_bessel_k0, k0, scaled = false),
    op!(aten::special_modified_bessel_k1, k1, scaled = false),
    op!(aten::special_scaled_modified_bessel_k0, k0, scaled = true),
    op!(aten::special_scaled_modified_bessel_k1, k1, scaled = true),
];

/// The Airy function Ai.
fn airy_ai(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::airy_ai(cx, x)))
}

/// The modified Bessel function of the first kind, of order 0.
fn i0(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::i0(cx, x)))
}

/// `e^-|x| I0(x)`.
fn i0e(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::i0e(cx, x)))
}

/// The modified Bessel function of the first kind, of order 1.
fn i1(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::i1(cx, x)))
}

/// `e^-|x| I1(x)`.
fn i1e(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::i1e(cx, x)))
}

/// The Bessel function of the first kind, of order 0.
fn j0(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::j0(cx, x)))
}

/// The Bessel function of the first kind, of order 1.
fn j1(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::j1(cx, x)))
}

/// The Bessel function of the second kind, of order 0.
fn y0(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::y0(cx, x)))
}

/// The Bessel function of the second kind, of order 1.
fn y1(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::y1(cx, x)))
}

/// The modified Bessel function of the second kind, of order 0; `scaled` times `e^x`.
fn k0(cx: &Cx, x: Value, scaled: bool) -> Lowered {
    Ok(double(cx, x, |x| bessel::k0(cx, x, scaled)))
}

/// The modified Bessel function of the second kind, of order 1; `scaled` times `e^x`.
fn k1(cx: &Cx, x: Value, scaled: bool) -> Lowered {
    Ok(double(cx, x, |x| bessel::k1(cx, x, scaled)))
}

checks! {
    computed_in_float64 {
        "aten.special_bessel_j0(x: f32[s0]) -> f32[s0]" => "
        (float[s0] x) => (float[s0] special_bessel_j0)
        <
          double val_0 = {5.783185962946785},
          double val_1 = {30.471262343662087},
          double val_2 = {-4794432209.782018},
          double val_3 = {1956174919465.5657},
          double val_4 = {-249248344360967.72},
          double val_5 = {9708622510473064.0},
          double val_6 = {499.563147152651},
          double val_7 = {173785.4016763747},
          double val_8 = {48440965.83399621},
          double val_9 = {11185553704.535683},
          double val_10 = {2112775201154.892},
          double val_11 = {310518229857422.56},
          double val_12 = {3.1812195594320496e16},
          double val_13 = {1.7108629408104315e18},
          double val_14 = {5.0},
          double val_15 = {0.7853981633974483},
          double val_16 = {0.0007969367292973471},
          double val_17 = {0.08283523921074408},
          double val_18 = {1.239533716464143},
          double val_19 = {5.447250030587687},
          double val_20 = {8.74716500199817},
          double val_21 = {5.303240382353949},
          double val_22 = {1.0},
          double val_23 = {0.0009244088105588637},
          double val_24 = {0.08562884743544745},
          double val_25 = {1.2535274390105895},
          double val_26 = {5.470977403304171},
          double val_27 = {8.761908832370695},
          double val_28 = {5.306052882353947},
          double val_29 = {-0.011366383889846916},
          double val_30 = {-1.2825271867050931},
          double val_31 = {-19.553954425773597},
          double val_32 = {-93.20601521237683},
          double val_33 = {-177.68116798048806},
          double val_34 = {-147.07750515495118},
          double val_35 = {-51.41053267665993},
          double val_36 = {-6.050143506007285},
          double val_37 = {64.3178256118178},
          double val_38 = {856.4300259769806},
          double val_39 = {3882.4018360540163},
          double val_40 = {7240.467741956525},
          double val_41 = {5930.727011873169},
          double val_42 = {2062.0933166032783},
          double val_43 = {242.0057402402914},
          double val_44 = {0.7978845608028654}
        >
        {
          val_45 = Cast <to: int = 11> (x)
          val_46 = Abs (val_45)
          val_47 = Mul (val_46, val_46)
          val_48 = Sub (val_47, val_0)
          val_49 = Sub (val_47, val_1)
          val_50 = Mul (val_48, val_49)
          val_51 = Mul (val_2, val_47)
          val_52 = Add (val_51, val_3)
          val_53 = Mul (val_52, val_47)
          val_54 = Add (val_53, val_4)
          val_55 = Mul (val_54, val_47)
          val_56 = Add (val_55, val_5)
          val_57 = Mul (val_6, val_47)
          val_58 = Add (val_57, val_7)
          val_59 = Mul (val_58, val_47)
          val_60 = Add (val_59, val_8)
          val_61 = Mul (val_60, val_47)
          val_62 = Add (val_61, val_9)
          val_63 = Mul (val_62, val_47)
          val_64 = Add (val_63, val_10)
          val_65 = Mul (val_64, val_47)
          val_66 = Add (val_65, val_11)
          val_67 = Mul (val_66, val_47)
          val_68 = Add (val_67, val_12)
          val_69 = Mul (val_68, val_47)
          val_70 = Add (val_69, val_13)
          val_71 = Div (val_56, val_70)
          val_72 = Mul (val_50, val_71)
          val_73 = Div (val_14, val_46)
          val_74 = Mul (val_73, val_73)
          val_75 = Sub (val_46, val_15)
          val_76 = Mul (val_16, val_74)
          val_77 = Add (val_76, val_17)
          val_78 = Mul (val_77, val_74)
          val_79 = Add (val_78, val_18)
          val_80 = Mul (val_79, val_74)
          val_81 = Add (val_80, val_19)
          val_82 = Mul (val_81, val_74)
          val_83 = Add (val_82, val_20)
          val_84 = Mul (val_83, val_74)
          val_85 = Add (val_84, val_21)
          val_86 = Mul (val_85, val_74)
          val_87 = Add (val_86, val_22)
          val_88 = Mul (val_23, val_74)
          val_89 = Add (val_88, val_24)
          val_90 = Mul (val_89, val_74)
          val_91 = Add (val_90, val_25)
          val_92 = Mul (val_91, val_74)
          val_93 = Add (val_92, val_26)
          val_94 = Mul (val_93, val_74)
          val_95 = Add (val_94, val_27)
          val_96 = Mul (val_95, val_74)
          val_97 = Add (val_96, val_28)
          val_98 = Mul (val_97, val_74)
          val_99 = Add (val_98, val_22)
          val_100 = Div (val_87, val_99)
          val_101 = Mul (val_29, val_74)
          val_102 = Add (val_101, val_30)
          val_103 = Mul (val_102, val_74)
          val_104 = Add (val_103, val_31)
          val_105 = Mul (val_104, val_74)
          val_106 = Add (val_105, val_32)
          val_107 = Mul (val_106, val_74)
          val_108 = Add (val_107, val_33)
          val_109 = Mul (val_108, val_74)
          val_110 = Add (val_109, val_34)
          val_111 = Mul (val_110, val_74)
          val_112 = Add (val_111, val_35)
          val_113 = Mul (val_112, val_74)
          val_114 = Add (val_113, val_36)
          val_115 = Mul (val_37, val_74)
          val_116 = Add (val_115, val_38)
          val_117 = Mul (val_116, val_74)
          val_118 = Add (val_117, val_39)
          val_119 = Mul (val_118, val_74)
          val_120 = Add (val_119, val_40)
          val_121 = Mul (val_120, val_74)
          val_122 = Add (val_121, val_41)
          val_123 = Mul (val_122, val_74)
          val_124 = Add (val_123, val_42)
          val_125 = Mul (val_124, val_74)
          val_126 = Add (val_125, val_43)
          val_127 = Div (val_114, val_126)
          val_128 = Mul (val_73, val_127)
          val_129 = Sin (val_75)
          val_130 = Cos (val_75)
          val_131 = Sqrt (val_46)
          val_132 = Div (val_44, val_131)
          val_133 = Mul (val_100, val_130)
          val_134 = Mul (val_128, val_129)
          val_135 = Sub (val_133, val_134)
          val_136 = Mul (val_135, val_132)
          val_137 = LessOrEqual (val_46, val_14)
          val_138 = Where (val_137, val_72, val_136)
          special_bessel_j0 = Cast <to: int = 1> (val_138)
        }
        ";
    }
}

//! Bessel functions and the Airy function. Formulas are in `math/bessel.rs`.

use crate::math::bessel;
use crate::math::precision::{double, in_double};
use crate::{AtenOp, Cx, Lowered, checks, op};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::i0, in_double(bessel::i0)),
    op!(aten::special_airy_ai, in_double(bessel::airy_ai)),
    op!(aten::special_bessel_j0, in_double(bessel::j0)),
    op!(aten::special_bessel_j1, in_double(bessel::j1)),
    op!(aten::special_bessel_y0, in_double(bessel::y0)),
    op!(aten::special_bessel_y1, in_double(bessel::y1)),
    op!(aten::special_i0, in_double(bessel::i0)),
    op!(aten::special_i0e, in_double(bessel::i0e)),
    op!(aten::special_i1, in_double(bessel::i1)),
    op!(aten::special_i1e, in_double(bessel::i1e)),
    op!(aten::special_modified_bessel_i0, in_double(bessel::i0)),
    op!(aten::special_modified_bessel_i1, in_double(bessel::i1)),
    op!(aten::special_modified_bessel_k0, k0, scaled = false),
    op!(aten::special_modified_bessel_k1, k1, scaled = false),
    op!(aten::special_scaled_modified_bessel_k0, k0, scaled = true),
    op!(aten::special_scaled_modified_bessel_k1, k1, scaled = true),
];

/// The modified Bessel function of the second kind, of order 0; `scaled` times `e^x`.
fn k0(cx: &Cx, x: Value, scaled: bool) -> Lowered {
    Ok(double(cx, x, |x| bessel::k0(cx, x, scaled)))
}

/// The modified Bessel function of the second kind, of order 1; `scaled` times `e^x`.
fn k1(cx: &Cx, x: Value, scaled: bool) -> Lowered {
    Ok(double(cx, x, |x| bessel::k1(cx, x, scaled)))
}

checks! {
    // Computed in float64.
    "aten.special_bessel_j0(x: f32[s0]) -> f32[s0]" => "
    val_0 = Cast <to: int = 11> (x)
    val_1 = Abs (val_0)
    val_2 = Mul (val_1, val_1)
    val_3 = Sub (val_2, double {5.783185962946785})
    val_4 = Sub (val_2, double {30.471262343662087})
    val_5 = Mul (val_3, val_4)
    val_6 = Mul (double {-4794432209.782018}, val_2)
    val_7 = Add (val_6, double {1956174919465.5657})
    val_8 = Mul (val_7, val_2)
    val_9 = Add (val_8, double {-249248344360967.72})
    val_10 = Mul (val_9, val_2)
    val_11 = Add (val_10, double {9708622510473064.0})
    val_12 = Mul (double {499.563147152651}, val_2)
    val_13 = Add (val_12, double {173785.4016763747})
    val_14 = Mul (val_13, val_2)
    val_15 = Add (val_14, double {48440965.83399621})
    val_16 = Mul (val_15, val_2)
    val_17 = Add (val_16, double {11185553704.535683})
    val_18 = Mul (val_17, val_2)
    val_19 = Add (val_18, double {2112775201154.892})
    val_20 = Mul (val_19, val_2)
    val_21 = Add (val_20, double {310518229857422.56})
    val_22 = Mul (val_21, val_2)
    val_23 = Add (val_22, double {3.1812195594320496e16})
    val_24 = Mul (val_23, val_2)
    val_25 = Add (val_24, double {1.7108629408104315e18})
    val_26 = Div (val_11, val_25)
    val_27 = Mul (val_5, val_26)
    val_28 = Div (double {5.0}, val_1)
    val_29 = Mul (val_28, val_28)
    val_30 = Sub (val_1, double {0.7853981633974483})
    val_31 = Mul (double {0.0007969367292973471}, val_29)
    val_32 = Add (val_31, double {0.08283523921074408})
    val_33 = Mul (val_32, val_29)
    val_34 = Add (val_33, double {1.239533716464143})
    val_35 = Mul (val_34, val_29)
    val_36 = Add (val_35, double {5.447250030587687})
    val_37 = Mul (val_36, val_29)
    val_38 = Add (val_37, double {8.74716500199817})
    val_39 = Mul (val_38, val_29)
    val_40 = Add (val_39, double {5.303240382353949})
    val_41 = Mul (val_40, val_29)
    val_42 = Add (val_41, double {1.0})
    val_43 = Mul (double {0.0009244088105588637}, val_29)
    val_44 = Add (val_43, double {0.08562884743544745})
    val_45 = Mul (val_44, val_29)
    val_46 = Add (val_45, double {1.2535274390105895})
    val_47 = Mul (val_46, val_29)
    val_48 = Add (val_47, double {5.470977403304171})
    val_49 = Mul (val_48, val_29)
    val_50 = Add (val_49, double {8.761908832370695})
    val_51 = Mul (val_50, val_29)
    val_52 = Add (val_51, double {5.306052882353947})
    val_53 = Mul (val_52, val_29)
    val_54 = Add (val_53, double {1.0})
    val_55 = Div (val_42, val_54)
    val_56 = Mul (double {-0.011366383889846916}, val_29)
    val_57 = Add (val_56, double {-1.2825271867050931})
    val_58 = Mul (val_57, val_29)
    val_59 = Add (val_58, double {-19.553954425773597})
    val_60 = Mul (val_59, val_29)
    val_61 = Add (val_60, double {-93.20601521237683})
    val_62 = Mul (val_61, val_29)
    val_63 = Add (val_62, double {-177.68116798048806})
    val_64 = Mul (val_63, val_29)
    val_65 = Add (val_64, double {-147.07750515495118})
    val_66 = Mul (val_65, val_29)
    val_67 = Add (val_66, double {-51.41053267665993})
    val_68 = Mul (val_67, val_29)
    val_69 = Add (val_68, double {-6.050143506007285})
    val_70 = Mul (double {64.3178256118178}, val_29)
    val_71 = Add (val_70, double {856.4300259769806})
    val_72 = Mul (val_71, val_29)
    val_73 = Add (val_72, double {3882.4018360540163})
    val_74 = Mul (val_73, val_29)
    val_75 = Add (val_74, double {7240.467741956525})
    val_76 = Mul (val_75, val_29)
    val_77 = Add (val_76, double {5930.727011873169})
    val_78 = Mul (val_77, val_29)
    val_79 = Add (val_78, double {2062.0933166032783})
    val_80 = Mul (val_79, val_29)
    val_81 = Add (val_80, double {242.0057402402914})
    val_82 = Div (val_69, val_81)
    val_83 = Mul (val_28, val_82)
    val_84 = Sin (val_30)
    val_85 = Cos (val_30)
    val_86 = Sqrt (val_1)
    val_87 = Div (double {0.7978845608028654}, val_86)
    val_88 = Mul (val_55, val_85)
    val_89 = Mul (val_83, val_84)
    val_90 = Sub (val_88, val_89)
    val_91 = Mul (val_90, val_87)
    val_92 = LessOrEqual (val_1, double {5.0})
    val_93 = Where (val_92, val_27, val_91)
    special_bessel_j0 = Cast <to: int = 1> (val_93)
    ";
}

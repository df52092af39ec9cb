//! SVG plots of lines with two logarithmic axes.

use std::fmt::Write;

/// A line with its points.
pub struct Series {
    pub name: &'static str,
    pub points: Vec<(f64, f64)>,
}

/// Lines of seconds.
pub struct Plot {
    pub title: &'static str,
    /// The label of the horizontal axis.
    pub x: &'static str,
    pub series: Vec<Series>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
/// Margins for the labels: left, right, top, bottom.
const MARGINS: [f64; 4] = [60.0, 150.0, 40.0, 40.0];
const COLORS: [&str; 4] = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad"];

/// A logarithmic axis between two pixels.
struct Axis {
    from: f64,
    to: f64,
    pixels: (f64, f64),
}

impl Axis {
    fn at(&self, value: f64) -> f64 {
        let (start, end) = self.pixels;
        let part = (value / self.from).ln() / (self.to / self.from).ln();
        start + part * (end - start)
    }
}

impl Plot {
    /// The plot as SVG.
    pub fn svg(&self) -> String {
        let (x, y) = self.axes();
        let mut svg = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">"#
        );
        svg += r#"<rect width="100%" height="100%" fill="white"/>"#;
        self.frame(&mut svg, &x, &y);
        self.lines(&mut svg, &x, &y);
        self.names(&mut svg, &x, &y);
        svg += "</svg>\n";
        svg
    }

    fn points(&self) -> impl Iterator<Item = &(f64, f64)> {
        self.series.iter().flat_map(|series| &series.points)
    }

    fn axes(&self) -> (Axis, Axis) {
        let [left, right, top, bottom] = MARGINS;
        let range = |of: fn(&(f64, f64)) -> f64| {
            let values = self.points().map(of);
            values.fold((f64::INFINITY, 1e-9), |(low, high), v| (v.min(low), v.max(high)))
        };
        let (low, high) = range(|point| point.0);
        let x = Axis { from: low, to: high.max(low * 2.0), pixels: (left, WIDTH - right) };
        let (low, high) = range(|point| point.1);
        let (low, high) = (low.log10().floor(), high.log10().ceil());
        let y = Axis {
            from: 10f64.powf(low),
            to: 10f64.powf(high.max(low + 1.0)),
            pixels: (HEIGHT - bottom, top),
        };
        (x, y)
    }

    /// The title, ticks with their texts, and a line across for each decade.
    fn frame(&self, svg: &mut String, x: &Axis, y: &Axis) {
        let [left, right, top, bottom] = MARGINS;
        let mut text = |x: f64, y: f64, anchor: &str, text: &str| {
            // Writing to a String never fails.
            let _ =
                write!(svg, r#"<text x="{x:.0}" y="{y:.0}" text-anchor="{anchor}">{text}</text>"#);
        };
        text(left, top - 20.0, "start", self.title);
        text(WIDTH - right, HEIGHT - 8.0, "end", self.x);
        let mut ticks: Vec<f64> = self.points().map(|point| point.0).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        for tick in ticks {
            text(x.at(tick), HEIGHT - bottom + 16.0, "middle", &tick.to_string());
        }
        let exponents = y.from.log10().round() as i32..=y.to.log10().round() as i32;
        let decades: Vec<f64> = exponents.map(|exponent| 10f64.powf(exponent.into())).collect();
        for &seconds in &decades {
            text(left - 6.0, y.at(seconds) + 4.0, "end", &format!("{seconds} s"));
        }
        for seconds in decades {
            let at = y.at(seconds);
            let end = WIDTH - right;
            let _ = write!(
                svg,
                r##"<line x1="{left}" y1="{at:.1}" x2="{end}" y2="{at:.1}" stroke="#ddd"/>"##
            );
        }
    }

    /// The series with their colours.
    fn coloured(&self) -> impl Iterator<Item = (&Series, &&'static str)> {
        self.series.iter().zip(COLORS.iter().cycle())
    }

    /// A line with circles for each series.
    fn lines(&self, svg: &mut String, x: &Axis, y: &Axis) {
        for (series, color) in self.coloured() {
            let places: Vec<(f64, f64)> =
                series.points.iter().map(|point| (x.at(point.0), y.at(point.1))).collect();
            let line: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = write!(
                svg,
                r#"<polyline points="{}" fill="none" stroke="{color}" stroke-width="2"/>"#,
                line.join(" ")
            );
            for (x, y) in places {
                let _ = write!(svg, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{color}"/>"#);
            }
        }
    }

    /// The names of the series, at the right ends of their lines, one below another.
    fn names(&self, svg: &mut String, x: &Axis, y: &Axis) {
        let ends = self.coloured().filter_map(|(series, color)| {
            let (end, seconds) = series.points.last()?;
            Some((y.at(*seconds) + 4.0, x.at(*end) + 8.0, series.name, color))
        });
        let mut names: Vec<_> = ends.collect();
        names.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = 0.0;
        for (at, from, name, color) in names {
            let at = at.max(free);
            free = at + 14.0;
            let _ = write!(svg, r#"<text x="{from:.0}" y="{at:.0}" fill="{color}">{name}</text>"#);
        }
    }
}

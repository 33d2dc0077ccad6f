//! PNG.

use veracity_draw::{layout, svg};

use crate::pipelines::{chain, fan, mesh, one, three, twelve};

/// Also writes the pictures into the folder that `VERACITY_PICTURES` names, for those who want to
/// look at them.
#[test]
fn pixels_are_twice_the_units_and_the_same_every_time() {
    for (name, pipeline) in [
        ("one", one()),
        ("three", three()),
        ("twelve", twelve()),
        ("chain", chain(120)),
        ("fan", fan(118)),
        ("mesh", mesh(6, 20)),
    ] {
        let layout = layout(&pipeline).unwrap();
        let png = veracity_draw::png(&layout).unwrap();
        let number = |at: usize| i32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        if layout.width * layout.height < 10_000_000 {
            assert_eq!((number(16), number(20)), (2 * layout.width, 2 * layout.height), "{name}");
        }
        if let Some(folder) = std::env::var_os("VERACITY_PICTURES") {
            let base = std::path::Path::new(&folder).join(name);
            std::fs::write(base.with_extension("png"), &png).unwrap();
            std::fs::write(base.with_extension("svg"), svg(&layout)).unwrap();
        }
    }
    let layout = layout(&three()).unwrap();
    assert_eq!(veracity_draw::png(&layout).unwrap(), veracity_draw::png(&layout).unwrap());
}

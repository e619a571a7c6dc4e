//! Reads qlog files with the crate that quiche logs with: every record must be an event that it knows.
use qlog::reader::{Event, QlogSeqReader};

fn main() {
    for path in std::env::args().skip(1) {
        let reader = QlogSeqReader::with_file(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut count = 0;
        for event in reader {
            match event {
                Event::Qlog(_) => count += 1,
                Event::Json(event) => panic!("{path}: an event that is not of the draft: {event:?}"),
            }
        }
        println!("{path} {count}");
    }
}

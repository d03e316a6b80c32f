// A file of its own: an old Node refuses to read whatever has an import() in it.
import('./programs/published.mjs');

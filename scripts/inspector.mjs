// npm run test:inspector: see programs/inspector.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/inspector.mjs');

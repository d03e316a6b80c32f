// npm start: see programs/start.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/start.mjs');

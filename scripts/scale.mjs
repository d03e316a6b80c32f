// npm run scale: see programs/scale.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/scale.mjs');

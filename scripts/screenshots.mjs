// npm run screenshots: see programs/screenshots.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/screenshots.mjs');

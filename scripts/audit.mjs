// npm run audit: see programs/audit.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/audit.mjs');

// npm run schema: see programs/schema.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/schema.mjs');

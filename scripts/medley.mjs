// npm run -s medley -- COMMAND: an operator's command; see programs/medley.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/medley.mjs');

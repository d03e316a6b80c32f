// npm run test:shells: see programs/shells.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/shells.mjs');

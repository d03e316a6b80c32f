// npm pack and npm publish run this first: see programs/prepack.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/prepack.mjs');

// npm run sbom: see programs/sbom.mjs, which Node reads only if it can.
import './node-version.cjs';

import('./programs/sbom.mjs');

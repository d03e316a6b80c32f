#!/usr/bin/env node
// medley COMMAND, of the published package; alone it starts the service. The program is in scripts/programs/published.mjs,
// which Node reads only if it can.
['node-version', 'published'].forEach(function (name) {
  require('../scripts/' + name + '.cjs');
});

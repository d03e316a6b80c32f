// npm run audit: compares every package of the lock files with the advisories of the registry. Plain
// JavaScript for Node 20. Ends with 0 if none is affected, with 1 if one is, and with 2 if the registry
// does not answer such questions: then nothing was compared, and it says so.
import { askNpm, packages } from '../lock-files.mjs';

/** Of one lock file: the affected packages, or why nothing could be compared. */
async function auditOf({ folder }) {
  const { answer, problem } = await askNpm(['audit', '--json', '--package-lock-only'], folder);
  if (answer?.vulnerabilities === undefined) return { failure: answer?.message ?? answer?.error?.summary ?? problem };
  return { affected: Object.values(answer.vulnerabilities) };
}

function describe({ name, severity, range, via }) {
  const titles = via.flatMap((each) => (typeof each === 'string' ? [] : [`${each.title} ${each.url}`]));
  return `${severity.padEnd(8)} ${name} ${range}${titles.map((title) => `\n           ${title}`).join('')}`;
}

async function main() {
  let affected_count = 0;
  const audits = await Promise.all(packages.map(auditOf));
  for (const [index, part] of packages.entries()) {
    const { affected, failure } = audits[index];
    if (affected === undefined) {
      console.error(
        `Nothing was compared: the registry does not answer audits (${failure}).\nUse a registry that does (npm config set registry …), or give the files of npm run sbom to a scanner that has advisories of its own.`,
      );
      return 2;
    }
    console.log(`${part.name}: ${affected.length === 0 ? 'no package is' : `${affected.length} are`} affected`);
    for (const each of affected) console.log(describe(each));
    affected_count += affected.length;
  }
  return affected_count === 0 ? 0 : 1;
}

process.exitCode = await main();

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';

/**
 * Checks the dependency rules, and that all modules were checked. With a TypeScript that has no JavaScript API,
 * dependency-cruiser checks nothing and reports success.
 */
const FOLDERS = ['src', 'dashboard/src', 'packages/client/src', 'packages/import/src'];
const run = spawnSync('depcruise', ['--output-type', 'json', ...FOLDERS], {
  encoding: 'utf8',
  maxBuffer: 256 * 1024 * 1024,
});
if (run.error !== undefined) throw run.error;

interface Violation {
  readonly rule: { readonly name: string };
  readonly from: string;
  readonly to: string;
}
const { summary } = JSON.parse(run.stdout) as {
  summary: { totalCruised: number; totalDependenciesCruised: number; violations: Violation[] };
};
for (const { rule, from, to } of summary.violations) console.error(`${rule.name}: ${from} → ${to}`);

const sources = FOLDERS.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }),
);
const expected = sources.filter((file) => /\.tsx?$/.test(file)).length;
if (summary.totalCruised < expected || summary.totalDependenciesCruised === 0) {
  console.error(`Only ${summary.totalCruised} of ${expected} modules were checked.`);
  process.exit(1);
}
if (summary.violations.length > 0) process.exit(1);
console.log(`${summary.totalCruised} modules follow the dependency rules.`);

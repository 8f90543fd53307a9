import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Checks that each type name is unique in the repository and is not one of the vague names below. Classes, types,
 * interfaces and enums share one namespace.
 */
const VAGUE = /^(Told|Asked|Way|Known|Place|Said|Who|Props)$/;
const DECLARATION =
  /^ *(?:export )?(?:declare )?(?:abstract )?(?:type|interface|class|enum) ([A-Z]\w*)(?= extends | implements |[<{ ]*[<{=])/gm;

const files = execFileSync('git', ['ls-files', '*.ts', '*.tsx'], { encoding: 'utf8' }).split('\n');
const places = new Map<string, string[]>();
for (const file of files.filter((name) => name !== '')) {
  for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(DECLARATION)) {
    places.set(name, [...(places.get(name) ?? []), file]);
  }
}
const faults = [...places].filter(([name, at]) => at.length > 1 || VAGUE.test(name));
for (const [name, at] of faults) {
  console.error(
    at.length > 1
      ? `${name} has ${at.length} declarations: ${at.join(', ')}`
      : `${name} in ${at[0]} is too vague. Name the thing it describes.`,
  );
}
if (places.size === 0 || faults.length > 0) process.exit(1);
console.log(`${places.size} type names are unique.`);

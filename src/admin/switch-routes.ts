import type { Config } from '../contract/config/config.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import { readDirectory } from '../overview/pools.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { autoGroupNamed, switchesOf, withSwitches, type Switches } from '../routing/auto-groups.ts';
import { compileGlobs } from '../routing/glob.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { changeConfig } from './change.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { invalid, serve } from './serve.ts';

const EDITS: Readonly<Record<'pause' | 'drain' | 'resume', Partial<Switches>>> = {
  pause: { paused: true },
  drain: { draining: true },
  resume: { paused: false, draining: false },
};

export function addSwitchRoutes(app: AdminApp): void {
  serve(app, 'switchGroups', async ({ context, body: { groups: globs, to } }) => {
    const { pools } = await readDirectory(context.env);
    const known = pools.map(({ group }) => group).filter((name) => name.startsWith(AUTO_PREFIX));
    let groups: readonly string[] = [];
    const { version, warnings } = await changeConfig(context, {
      action: `groups ${globs.join(' ')}: ${to}`,
      next(config) {
        groups = meantBy(globs, config, known);
        return groups.reduce((next, name) => switched(next, name, EDITS[to]), config);
      },
    });
    return { status: 200, body: { version, groups: [...groups], warnings }, version };
  });

  serve(app, 'pauseEverything', ({ context }) => switchEverything(context, true));
  serve(app, 'resumeEverything', ({ context }) => switchEverything(context, false));
}

async function switchEverything(context: AdminContext, paused: boolean) {
  const { version, warnings } = await changeConfig(context, {
    action: paused ? 'pause everything' : 'resume everything',
    next: (config) => ({ ...config, paused }),
  });
  return { status: 200, body: { version, paused, warnings }, version } as const;
}

/** Returns the groups that patterns match. Throws if a pattern has no match. */
function meantBy(globs: readonly string[], config: Config, known: readonly string[]): string[] {
  const names = [...config.groups, ...config.auto_groups].map(({ name }) => name);
  const all = [...new Set([...names, ...known])];
  const upstreams = resolveUpstreams(config, BUILT_IN_UPSTREAMS);
  const meant = globs.map((glob) => {
    const found = all.filter(compileGlobs([glob]));
    // An automatic group need not have had calls, because its name defines it.
    return found.length === 0 && autoGroupNamed(glob, upstreams) !== null ? [glob] : found;
  });
  const errors = meant.flatMap((found, index) =>
    found.length > 0 ? [] : [{ path: `groups[${index}]`, message: 'matches no known group' }],
  );
  if (errors.length > 0) throw invalid(errors);
  return [...new Set(meant.flat())].toSorted();
}

function switched(config: Config, name: string, edit: Partial<Switches>): Config {
  const index = config.groups.findIndex((group) => group.name === name);
  const group = config.groups[index];
  return group === undefined
    ? withSwitches(config, name, { ...switchesOf(config, name), ...edit })
    : { ...config, groups: config.groups.with(index, { ...group, ...edit }) };
}

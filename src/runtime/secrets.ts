import type { Env } from '../env.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import { memberIdOf } from '../contract/config/members.ts';
import type { Upstream } from '../contract/config/upstream.ts';

/** Finds the Worker secret of a name. Null: nobody has set it, or set it to nothing, as forms let people do. */
export function readSecret(env: object, name: string): string | null {
  const value = (env as Readonly<Record<string, unknown>>)[name];
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Lists the upstreams that wait for a secret which is not set: all their calls are refused. */
export function withoutSecret(
  env: object,
  upstreams: Iterable<Upstream>,
): { readonly id: string; readonly secret: string }[] {
  return [...upstreams].flatMap(({ id, secret }) =>
    secret === null || readSecret(env, secret) !== null ? [] : [{ id, secret }],
  );
}

/** Lists the members of groups that wait for a secret of their own which is not set: no call runs there. */
export function membersWithoutSecret(
  env: object,
  groups: readonly GroupConfig[],
): { readonly group: string; readonly member: string; readonly secret: string }[] {
  return groups.flatMap(({ name, members }) =>
    members.flatMap((member) => {
      const { secret, enabled } = member;
      if (!enabled || secret === undefined || readSecret(env, secret) !== null) return [];
      return [{ group: name, member: memberIdOf(member), secret }];
    }),
  );
}

/** A way to set a secret: the line to type, and what is to be done after it. */
interface WayToSet {
  readonly command: string;
  readonly afterwards: string;
}

/** Tells the way to set a secret where this Worker runs. Only Headgate's own server gives it a boot id. */
export function wayToSet({ BOOT_ID: bootId }: Pick<Env, 'BOOT_ID'>, name: string): WayToSet {
  return bootId === undefined
    ? {
        command: `npx wrangler secret put ${name}`,
        afterwards: 'It asks for the value, and puts it in force at once.',
      }
    : {
        command: `export ${name}='…'`,
        afterwards: 'Say so where Headgate is started, and restart it.',
      };
}

/** Tells an operator in one line how to set a secret where this Worker runs. */
export function howToSet(env: Pick<Env, 'BOOT_ID'>, name: string): string {
  const { command } = wayToSet(env, name);
  return env.BOOT_ID === undefined
    ? command
    : `${command} where Headgate is started, and restart it`;
}

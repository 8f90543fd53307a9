import type { Env } from '../env.ts';

/** How an operator sets a secret where this Worker runs. Only one that `npm run serve` started has a boot id. */
export function howToSet({ BOOT_ID: bootId }: Pick<Env, 'BOOT_ID'>, name: string): string {
  return bootId === undefined
    ? `npx wrangler secret put ${name}`
    : `${name}=… in the environment of npm run serve`;
}

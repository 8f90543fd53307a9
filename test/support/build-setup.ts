import { ensureBuilt } from '../../scripts/serve/build.ts';

/** Builds the Worker once, if it is missing or older than its sources. */
export default async function setup(): Promise<void> {
  await ensureBuilt();
}

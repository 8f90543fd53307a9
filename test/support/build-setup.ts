import { ensureBuilt } from '../../scripts/serve/build.ts';

/** Builds the Worker and the dashboard once, if they are missing or older than their sources. */
export default async function setup(): Promise<void> {
  await ensureBuilt();
}

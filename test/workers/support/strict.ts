import { inject } from 'vitest';
import '../../support/provided-context.ts';
import type { StrictStats } from '../../support/strict-counts.ts';
import type { StrictSettings } from '../../support/strict-settings.ts';

/** One isolated scope of the strict upstream, controlled over HTTP because it runs in Node. */
export interface Strict {
  readonly url: string;
  stats(): Promise<StrictStats>;
  configure(settings: Partial<StrictSettings>): Promise<void>;
  /** Lets streams go on that went silent for ever. */
  resume(): Promise<void>;
}

/** A scope of its own for a test. */
export async function strictScope(
  name: string,
  settings: Partial<StrictSettings> = {},
): Promise<Strict> {
  const url = `${inject('strictUpstreamUrl')}/scope/${name}-${crypto.randomUUID().slice(0, 8)}`;
  const control = async (verb: string, body?: unknown): Promise<StrictStats> => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(`${url}/__strict/${verb}`, init);
    if (!response.ok) throw new Error(`${verb}: ${await response.text()}`);
    return response.json();
  };
  const strict: Strict = {
    url,
    stats: () => control('stats'),
    configure: async (partial) => void (await control('configure', partial)),
    resume: async () => void (await control('resume')),
  };
  await strict.configure(settings);
  return strict;
}

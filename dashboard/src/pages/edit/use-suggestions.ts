import { api } from '../../api.ts';
import { useAnswer } from '../../ui/use-answer.ts';

/** The most frequent values of `match.operations`. */
const OPERATIONS = [
  'chat',
  'messages',
  'responses',
  'completions',
  'embeddings',
  'images',
  'audio_transcriptions',
];

/** Values that can be clicked instead of typed: existing upstreams and keys, and operations. */
export function useSuggestions(): Readonly<Record<string, readonly string[]>> {
  const [known] = useAnswer(askKnown, []);
  return { ...known, 'match.operations': OPERATIONS };
}

async function askKnown() {
  const [asked, listed] = await Promise.all([
    api('GET /upstreams', { query: { limit: 200 } }),
    api('GET /keys', { query: { limit: 20 } }),
  ]);
  const all = asked.ok ? asked.body.upstreams.filter(({ enabled }) => enabled) : [];
  // Upstreams in use come first, because most groups match those.
  const used = all.filter(({ configured, groups }) => configured !== null || groups.length > 0);
  const upstreams = [...new Set([...used, ...all].map(({ id }) => id))];
  return {
    'match.upstreams': upstreams,
    'members.upstream': upstreams,
    'match.keys': listed.ok ? listed.body.keys.map(({ id }) => id) : [],
  };
}

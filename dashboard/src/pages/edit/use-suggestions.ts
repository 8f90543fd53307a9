import { api } from '../../api.ts';
import { useAnswer } from '../../ui/use-answer.ts';

/** Operations that `match.operations` most often names. */
const OPERATIONS = [
  'chat',
  'messages',
  'responses',
  'completions',
  'embeddings',
  'images',
  'audio_transcriptions',
];

/** Words that can be clicked instead of typed: upstreams and keys that there are, operations. */
export function useSuggestions(): Readonly<Record<string, readonly string[]>> {
  const [known] = useAnswer(askKnown, []);
  return { ...known, 'match.operations': OPERATIONS };
}

async function askKnown() {
  const [asked, listed] = await Promise.all([
    api('listUpstreams', { query: { limit: 200 } }),
    api('listKeys', { query: { limit: 20 } }),
  ]);
  const all = asked.ok ? asked.body.upstreams.filter(({ enabled }) => enabled) : [];
  // Those in use first: they are what a group is most often about.
  const used = all.filter(({ configured, groups }) => configured !== null || groups.length > 0);
  const upstreams = [...new Set([...used, ...all].map(({ id }) => id))];
  return {
    'match.upstreams': upstreams,
    'members.upstream': upstreams,
    'match.keys': listed.ok ? listed.body.keys.map(({ id }) => id) : [],
  };
}

import { useEffect, useState } from 'preact/hooks';

const NONE: ReadonlyMap<string, string> = new Map();

/** Loads the descriptions of fields with the schema, which no other part of this page needs. */
export function useHelp(): ReadonlyMap<string, string> {
  const [help, setHelp] = useState(NONE);
  useEffect(() => {
    // The file that has the schemas anyway. Without it, as after an update of Headgate, the form works all the same.
    import('../configuration.ts').then(
      ({ UPSTREAM_HELP }) => setHelp(UPSTREAM_HELP),
      () => {},
    );
  }, []);
  return help;
}

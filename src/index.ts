import { createApp } from './http/app.ts';

export { DirectoryObject } from './directory/directory-object.ts';
export { FeedObject } from './feed/feed-object.ts';
export { GroupObject } from './group/group-object.ts';
export { RunsObject } from './runs/runs-object.ts';
export { TrialsObject } from './group/trials-object.ts';

export default createApp();

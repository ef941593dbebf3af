// The documents panel: a folder that is followed, and other tabs, change it.
import { followMark } from "./marks.js";

followMark("documents-mark", "documents");

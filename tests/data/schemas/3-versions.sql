BEGIN TRANSACTION;
CREATE TABLE conversations (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	title VARCHAR(200) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id)
);
INSERT INTO "conversations" VALUES(1,'61240a183bd5','ada','What is a good diet?','2026-11-25T13:28:32.829733+00:00','2026-11-25T13:28:32.868062+00:00');
INSERT INTO "conversations" VALUES(2,'20a73b3a1114','bob','Work','2026-11-25T13:28:32.907082+00:00','2026-11-25T13:28:32.907694+00:00');
CREATE TABLE facts (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	text TEXT NOT NULL, 
	"key" VARCHAR(1000) NOT NULL, 
	source VARCHAR(200) NOT NULL, 
	"on" BOOLEAN NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (user, "key"), 
	UNIQUE (id)
);
INSERT INTO "facts" VALUES(1,'77c3a7f81c1c','ada','I''m lactose intolerant.','im lactose intolerant','typed',1,'2026-11-25T13:28:32.795177+00:00','2026-11-25T13:28:32.795177+00:00');
INSERT INTO "facts" VALUES(2,'fa3f991f372d','ada','I like tea.','i like tea','typed',0,'2026-11-25T13:28:32.821527+00:00','2026-11-25T13:28:32.822379+00:00');
INSERT INTO "facts" VALUES(3,'a2effe5ececb','bob','I''m an engineer.','im an engineer','typed',1,'2026-11-25T13:28:32.828985+00:00','2026-11-25T13:28:32.828985+00:00');
CREATE TABLE preferences (
	user VARCHAR(200) NOT NULL, 
	choices TEXT NOT NULL, 
	PRIMARY KEY (user)
);
INSERT INTO "preferences" VALUES('ada','{"k": 6}');
CREATE TABLE schema_version (
	id INTEGER NOT NULL, 
	version INTEGER, 
	PRIMARY KEY (id)
);
INSERT INTO "schema_version" VALUES(1,2);
CREATE TABLE turns (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	conversation VARCHAR(32) NOT NULL, 
	process VARCHAR(32) NOT NULL, 
	utterance TEXT NOT NULL, 
	reply TEXT NOT NULL, 
	words TEXT NOT NULL, 
	feedback INTEGER NOT NULL, 
	turn TEXT NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id), 
	FOREIGN KEY(conversation) REFERENCES conversations (id) ON DELETE CASCADE
);
INSERT INTO "turns" VALUES(1,'166e7218873a','61240a183bd5','b77bf691f040','What is a good diet?','Lentils are rich in protein. [1]','what is a good diet?
lentils are rich in protein. [1]',1,'{"utterance":"What is a good diet?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25"},"id":"166e7218873a","created":"2026-11-25T13:28:32.830485Z","status":"done","step":"","intent":"question","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[{"id":"p1","title":"Lentils","text":"Lentils are rich in protein.","score":1.5,"found_by":[],"source":"","confidence":null}],"reserve":[],"confidence":null,"dropped":[],"digests":[],"answer":{"text":"Lentils are rich in protein. [1]","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"reasoning":"","sentences":[],"citations":[],"offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(2,'a21501c1a827','61240a183bd5','b77bf691f040','And to drink?','Oat drink.','and to drink?
oat drink.',0,'{"utterance":"And to drink?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25"},"id":"a21501c1a827","created":"2026-11-25T13:28:32.855008Z","status":"done","step":"","intent":"question","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"answer":{"text":"Oat drink.","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"reasoning":"","sentences":[],"citations":[],"offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(3,'b7eb61c0f060','61240a183bd5','b77bf691f040','And to drink?','Tea, without milk.','and to drink?
tea, without milk.',0,'{"utterance":"And to drink?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25"},"id":"b7eb61c0f060","created":"2026-11-25T13:28:32.867391Z","status":"done","step":"","intent":"question","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"answer":{"text":"Tea, without milk.","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"reasoning":"","sentences":[],"citations":[],"offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(4,'bc775e82cde3','20a73b3a1114','b77bf691f040','Hello','Hi.','hello
hi.',0,'{"utterance":"Hello","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25"},"id":"bc775e82cde3","created":"2026-11-25T13:28:32.907463Z","status":"done","step":"","intent":"question","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"answer":{"text":"Hi.","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"reasoning":"","sentences":[],"citations":[],"offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
CREATE TABLE users (
	name VARCHAR(64) NOT NULL, 
	hash VARCHAR(300) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "users" VALUES('ada','scrypt$16384$8$5$eYbl36aiEIbL8oTqTHLmbQ==$2PI+X5BNebHY0lp+T3MBOaD0Lig7as0J27GLNsXSM94=','2026-11-25T13:28:34.698771+00:00');
CREATE TABLE versions (
	turn VARCHAR(32) NOT NULL, 
	original VARCHAR(32) NOT NULL, 
	shown INTEGER NOT NULL, 
	side INTEGER NOT NULL, 
	PRIMARY KEY (turn), 
	FOREIGN KEY(turn) REFERENCES turns (id) ON DELETE CASCADE, 
	FOREIGN KEY(original) REFERENCES turns (id) ON DELETE CASCADE
);
INSERT INTO "versions" VALUES('a21501c1a827','a21501c1a827',0,0);
INSERT INTO "versions" VALUES('b7eb61c0f060','a21501c1a827',1,0);
CREATE INDEX ix_conversations_user ON conversations (user);
CREATE INDEX turns_of ON turns (conversation, n);
CREATE INDEX ix_versions_original ON versions (original);
COMMIT;
